"""Kubernetes' CEL functions (apiserver 1.37); a point marks a member of its first operand."""

from typing import Final

OVERLOADS: Final = """
!_ (bool) bool
-_ (double) double
-_ (int) int
@in (A, list(A)) bool
@in (A, map(A, B)) bool
@sortByAssociatedKeys .(list(T), list(int)) list(T)
@sortByAssociatedKeys .(list(T), list(uint)) list(T)
@sortByAssociatedKeys .(list(T), list(double)) list(T)
@sortByAssociatedKeys .(list(T), list(bool)) list(T)
@sortByAssociatedKeys .(list(T), list(Duration)) list(T)
@sortByAssociatedKeys .(list(T), list(Timestamp)) list(T)
@sortByAssociatedKeys .(list(T), list(string)) list(T)
@sortByAssociatedKeys .(list(T), list(bytes)) list(T)
_!=_ (A, A) bool
_%_ (int, int) int
_%_ (uint, uint) uint
_&&_ (bool, bool) bool
_*_ (double, double) double
_*_ (int, int) int
_*_ (uint, uint) uint
_+_ (bytes, bytes) bytes
_+_ (double, double) double
_+_ (Duration, Duration) Duration
_+_ (Duration, Timestamp) Timestamp
_+_ (Timestamp, Duration) Timestamp
_+_ (int, int) int
_+_ (list(A), list(A)) list(A)
_+_ (string, string) string
_+_ (uint, uint) uint
_-_ (double, double) double
_-_ (Duration, Duration) Duration
_-_ (int, int) int
_-_ (Timestamp, Duration) Timestamp
_-_ (Timestamp, Timestamp) Duration
_-_ (uint, uint) uint
_/_ (double, double) double
_/_ (int, int) int
_/_ (uint, uint) uint
_<=_ (bool, bool) bool
_<=_ (int, int) bool
_<=_ (int, double) bool
_<=_ (int, uint) bool
_<=_ (uint, uint) bool
_<=_ (uint, double) bool
_<=_ (uint, int) bool
_<=_ (double, double) bool
_<=_ (double, int) bool
_<=_ (double, uint) bool
_<=_ (string, string) bool
_<=_ (bytes, bytes) bool
_<=_ (Timestamp, Timestamp) bool
_<=_ (Duration, Duration) bool
_<_ (bool, bool) bool
_<_ (int, int) bool
_<_ (int, double) bool
_<_ (int, uint) bool
_<_ (uint, uint) bool
_<_ (uint, double) bool
_<_ (uint, int) bool
_<_ (double, double) bool
_<_ (double, int) bool
_<_ (double, uint) bool
_<_ (string, string) bool
_<_ (bytes, bytes) bool
_<_ (Timestamp, Timestamp) bool
_<_ (Duration, Duration) bool
_==_ (A, A) bool
_>=_ (bool, bool) bool
_>=_ (int, int) bool
_>=_ (int, double) bool
_>=_ (int, uint) bool
_>=_ (uint, uint) bool
_>=_ (uint, double) bool
_>=_ (uint, int) bool
_>=_ (double, double) bool
_>=_ (double, int) bool
_>=_ (double, uint) bool
_>=_ (string, string) bool
_>=_ (bytes, bytes) bool
_>=_ (Timestamp, Timestamp) bool
_>=_ (Duration, Duration) bool
_>_ (bool, bool) bool
_>_ (int, int) bool
_>_ (int, double) bool
_>_ (int, uint) bool
_>_ (uint, uint) bool
_>_ (uint, double) bool
_>_ (uint, int) bool
_>_ (double, double) bool
_>_ (double, int) bool
_>_ (double, uint) bool
_>_ (string, string) bool
_>_ (bytes, bytes) bool
_>_ (Timestamp, Timestamp) bool
_>_ (Duration, Duration) bool
_?_:_ (bool, A, A) A
_[?_] (list(V), int) optional_type(V)
_[?_] (optional_type(list(V)), int) optional_type(V)
_[?_] (map(K, V), K) optional_type(V)
_[?_] (optional_type(map(K, V)), K) optional_type(V)
_[_] (list(A), int) A
_[_] (map(A, B), A) B
_[_] (optional_type(list(V)), int) optional_type(V)
_[_] (optional_type(map(K, V)), K) optional_type(V)
_||_ (bool, bool) bool
add .(kubernetes.Quantity, kubernetes.Quantity) kubernetes.Quantity
add .(kubernetes.Quantity, int) kubernetes.Quantity
allowed .(kubernetes.authorization.Decision) bool
asApproximateFloat .(kubernetes.Quantity) double
asInteger .(kubernetes.Quantity) int
bool (bool) bool
bool (string) bool
bytes (bytes) bytes
bytes (string) bytes
cel.@mapInsert (map(K, V), K, V) map(K, V)
cel.@mapInsert (map(K, V), map(K, V)) map(K, V)
charAt .(string, int) string
check .(kubernetes.authorization.PathCheck, string) kubernetes.authorization.Decision
check .(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.Decision
cidr (string) net.CIDR
compareTo .(kubernetes.Quantity, kubernetes.Quantity) int
compareTo .(kubernetes.Semver, kubernetes.Semver) int
contains .(string, string) bool
containsCIDR .(net.CIDR, string) bool
containsCIDR .(net.CIDR, net.CIDR) bool
containsIP .(net.CIDR, string) bool
containsIP .(net.CIDR, net.IP) bool
distinct .(list(T)) list(T)
double (double) double
double (int) double
double (string) double
double (uint) double
duration (Duration) Duration
duration (int) Duration
duration (string) Duration
dyn (A) dyn
endsWith .(string, string) bool
error .(kubernetes.authorization.Decision) string
errored .(kubernetes.authorization.Decision) bool
family .(net.IP) int
fieldSelector .(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.ResourceCheck
find .(string, string) string
findAll .(string, string) list(string)
findAll .(string, string, int) list(string)
first .(list(V)) optional_type(V)
flatten .(list(list(T))) list(T)
flatten .(list(dyn), int) list(dyn)
format .(string, list(dyn)) string
format.byte () kubernetes.NamedFormat
format.date () kubernetes.NamedFormat
format.datetime () kubernetes.NamedFormat
format.dns1035Label () kubernetes.NamedFormat
format.dns1035LabelPrefix () kubernetes.NamedFormat
format.dns1123Label () kubernetes.NamedFormat
format.dns1123LabelPrefix () kubernetes.NamedFormat
format.dns1123Subdomain () kubernetes.NamedFormat
format.dns1123SubdomainPrefix () kubernetes.NamedFormat
format.labelValue () kubernetes.NamedFormat
format.named (string) optional_type(kubernetes.NamedFormat)
format.qualifiedName () kubernetes.NamedFormat
format.uri () kubernetes.NamedFormat
format.uuid () kubernetes.NamedFormat
getDate .(Timestamp) int
getDate .(Timestamp, string) int
getDayOfMonth .(Timestamp) int
getDayOfMonth .(Timestamp, string) int
getDayOfWeek .(Timestamp) int
getDayOfWeek .(Timestamp, string) int
getDayOfYear .(Timestamp) int
getDayOfYear .(Timestamp, string) int
getEscapedPath .(kubernetes.URL) string
getFullYear .(Timestamp) int
getFullYear .(Timestamp, string) int
getHost .(kubernetes.URL) string
getHostname .(kubernetes.URL) string
getHours .(Timestamp) int
getHours .(Timestamp, string) int
getHours .(Duration) int
getMilliseconds .(Timestamp) int
getMilliseconds .(Timestamp, string) int
getMilliseconds .(Duration) int
getMinutes .(Timestamp) int
getMinutes .(Timestamp, string) int
getMinutes .(Duration) int
getMonth .(Timestamp) int
getMonth .(Timestamp, string) int
getPort .(kubernetes.URL) string
getQuery .(kubernetes.URL) map(string, list(string))
getScheme .(kubernetes.URL) string
getSeconds .(Timestamp) int
getSeconds .(Timestamp, string) int
getSeconds .(Duration) int
group .(kubernetes.authorization.Authorizer, string) kubernetes.authorization.GroupCheck
hasValue .(optional_type(V)) bool
indexOf .(list(A), A) int
indexOf .(string, string) int
indexOf .(string, string, int) int
int (int) int
int (double) int
int (Duration) int
int (string) int
int (Timestamp) int
int (uint) int
ip (string) net.IP
ip .(net.CIDR) net.IP
ip.isCanonical (string) bool
isCIDR (string) bool
isGlobalUnicast .(net.IP) bool
isGreaterThan .(kubernetes.Quantity, kubernetes.Quantity) bool
isGreaterThan .(kubernetes.Semver, kubernetes.Semver) bool
isIP (string) bool
isInteger .(kubernetes.Quantity) bool
isLessThan .(kubernetes.Quantity, kubernetes.Quantity) bool
isLessThan .(kubernetes.Semver, kubernetes.Semver) bool
isLinkLocalMulticast .(net.IP) bool
isLinkLocalUnicast .(net.IP) bool
isLoopback .(net.IP) bool
isQuantity (string) bool
isSemver (string) bool
isSemver (string, bool) bool
isSorted .(list(int)) bool
isSorted .(list(uint)) bool
isSorted .(list(double)) bool
isSorted .(list(bool)) bool
isSorted .(list(Duration)) bool
isSorted .(list(Timestamp)) bool
isSorted .(list(string)) bool
isSorted .(list(bytes)) bool
isURL (string) bool
isUnspecified .(net.IP) bool
join .(list(string)) string
join .(list(string), string) string
labelSelector .(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.ResourceCheck
last .(list(V)) optional_type(V)
lastIndexOf .(list(A), A) int
lastIndexOf .(string, string) int
lastIndexOf .(string, string, int) int
lists.range (int) list(int)
lowerAscii .(string) string
major .(kubernetes.Semver) int
masked .(net.CIDR) net.CIDR
matches (string, string) bool
matches .(string, string) bool
max .(list(int)) int
max .(list(uint)) uint
max .(list(double)) double
max .(list(bool)) bool
max .(list(Duration)) Duration
max .(list(Timestamp)) Timestamp
max .(list(string)) string
max .(list(bytes)) bytes
min .(list(int)) int
min .(list(uint)) uint
min .(list(double)) double
min .(list(bool)) bool
min .(list(Duration)) Duration
min .(list(Timestamp)) Timestamp
min .(list(string)) string
min .(list(bytes)) bytes
minor .(kubernetes.Semver) int
name .(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.ResourceCheck
namespace .(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.ResourceCheck
optional.none () optional_type(V)
optional.of (V) optional_type(V)
optional.ofNonZeroValue (V) optional_type(V)
optional.unwrap (list(optional_type(V))) list(V)
or .(optional_type(V), optional_type(V)) optional_type(V)
orValue .(optional_type(V), V) V
patch .(kubernetes.Semver) int
path .(kubernetes.authorization.Authorizer, string) kubernetes.authorization.PathCheck
prefixLength .(net.CIDR) int
quantity (string) kubernetes.Quantity
reason .(kubernetes.authorization.Decision) string
replace .(string, string, string) string
replace .(string, string, string, int) string
resource .(kubernetes.authorization.GroupCheck, string) kubernetes.authorization.ResourceCheck
reverse .(list(T)) list(T)
semver (string) kubernetes.Semver
semver (string, bool) kubernetes.Semver
serviceAccount .(kubernetes.authorization.Authorizer, string, string) kubernetes.authorization.Authorizer
sets.contains (list(T), list(T)) bool
sets.equivalent (list(T), list(T)) bool
sets.intersects (list(T), list(T)) bool
sign (kubernetes.Quantity) int
size (bytes) int
size .(bytes) int
size (list(A)) int
size .(list(A)) int
size (map(A, B)) int
size .(map(A, B)) int
size (string) int
size .(string) int
slice .(list(T), int, int) list(T)
sort .(list(int)) list(int)
sort .(list(uint)) list(uint)
sort .(list(double)) list(double)
sort .(list(bool)) list(bool)
sort .(list(Duration)) list(Duration)
sort .(list(Timestamp)) list(Timestamp)
sort .(list(string)) list(string)
sort .(list(bytes)) list(bytes)
split .(string, string) list(string)
split .(string, string, int) list(string)
startsWith .(string, string) bool
string (string) string
string (bool) string
string (bytes) string
string (double) string
string (Duration) string
string (int) string
string (Timestamp) string
string (uint) string
string (net.IP) string
string (net.CIDR) string
strings.quote (string) string
sub .(kubernetes.Quantity, kubernetes.Quantity) kubernetes.Quantity
sub .(kubernetes.Quantity, int) kubernetes.Quantity
subresource .(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.ResourceCheck
substring .(string, int) string
substring .(string, int, int) string
sum .(list(int)) int
sum .(list(uint)) uint
sum .(list(double)) double
sum .(list(Duration)) Duration
timestamp (Timestamp) Timestamp
timestamp (int) Timestamp
timestamp (string) Timestamp
trim .(string) string
type (A) type(A)
uint (uint) uint
uint (double) uint
uint (int) uint
uint (string) uint
unwrapOpt .(list(optional_type(V))) list(V)
upperAscii .(string) string
url (string) kubernetes.URL
validate .(kubernetes.NamedFormat, string) optional_type(list(string))
value .(optional_type(V)) V
"""

NEWEST: Final = """
includes .(dyn, dyn) bool
"""
"""Functions that Kubernetes 1.37 brought. An API server evaluates them in stored expressions, and takes
them in new ones a minor version later: until then it may be rolled back to one that lacks them."""
