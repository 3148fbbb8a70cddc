"""Kubernetes' CEL functions (apiserver 1.37); a point marks a member of its first operand.

Functions with the same overloads share their rows. A row with ``Ordered`` stands for a row for each
type of ``ORDERED``, in that order.
"""

from typing import Final

ORDERED: Final = ("int", "uint", "double", "bool", "Duration", "Timestamp", "string", "bytes")
"""The types of list items that have an order."""

OVERLOADS: Final = """
!_ (bool) bool
-_ (double) double
-_ (int) int
@in (A, list(A)) bool
@in (A, map(A, B)) bool
@sortByAssociatedKeys .(list(T), list(Ordered)) list(T)
_!=_,_==_ (A, A) bool
_%_ (int, int) int
_%_ (uint, uint) uint
_&&_,_||_ (bool, bool) bool
_*_,_/_ (double, double) double
_*_,_/_ (int, int) int
_*_,_/_ (uint, uint) uint
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
_<=_,_<_,_>=_,_>_ (bool, bool) bool
_<=_,_<_,_>=_,_>_ (int, int) bool
_<=_,_<_,_>=_,_>_ (int, double) bool
_<=_,_<_,_>=_,_>_ (int, uint) bool
_<=_,_<_,_>=_,_>_ (uint, uint) bool
_<=_,_<_,_>=_,_>_ (uint, double) bool
_<=_,_<_,_>=_,_>_ (uint, int) bool
_<=_,_<_,_>=_,_>_ (double, double) bool
_<=_,_<_,_>=_,_>_ (double, int) bool
_<=_,_<_,_>=_,_>_ (double, uint) bool
_<=_,_<_,_>=_,_>_ (string, string) bool
_<=_,_<_,_>=_,_>_ (bytes, bytes) bool
_<=_,_<_,_>=_,_>_ (Timestamp, Timestamp) bool
_<=_,_<_,_>=_,_>_ (Duration, Duration) bool
_?_:_ (bool, A, A) A
_[?_] (list(V), int) optional_type(V)
_[?_] (optional_type(list(V)), int) optional_type(V)
_[?_] (map(K, V), K) optional_type(V)
_[?_] (optional_type(map(K, V)), K) optional_type(V)
_[_] (list(A), int) A
_[_] (map(A, B), A) B
_[_] (optional_type(list(V)), int) optional_type(V)
_[_] (optional_type(map(K, V)), K) optional_type(V)
add,sub .(kubernetes.Quantity, kubernetes.Quantity) kubernetes.Quantity
add,sub .(kubernetes.Quantity, int) kubernetes.Quantity
allowed,errored .(kubernetes.authorization.Decision) bool
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
contains,endsWith,startsWith .(string, string) bool
containsCIDR .(net.CIDR, string) bool
containsCIDR .(net.CIDR, net.CIDR) bool
containsIP .(net.CIDR, string) bool
containsIP .(net.CIDR, net.IP) bool
distinct,reverse .(list(T)) list(T)
double (double) double
double (int) double
double (string) double
double (uint) double
duration (Duration) Duration
duration (int) Duration
duration (string) Duration
dyn (A) dyn
error,reason .(kubernetes.authorization.Decision) string
family .(net.IP) int
fieldSelector .(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.ResourceCheck
labelSelector .(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.ResourceCheck
name .(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.ResourceCheck
namespace .(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.ResourceCheck
subresource .(kubernetes.authorization.ResourceCheck, string) kubernetes.authorization.ResourceCheck
find .(string, string) string
findAll,split .(string, string) list(string)
findAll,split .(string, string, int) list(string)
first,last .(list(V)) optional_type(V)
flatten .(list(list(T))) list(T)
flatten .(list(dyn), int) list(dyn)
format .(string, list(dyn)) string
format.byte,format.date,format.datetime,format.dns1035Label () kubernetes.NamedFormat
format.dns1035LabelPrefix,format.dns1123Label,format.dns1123LabelPrefix () kubernetes.NamedFormat
format.dns1123Subdomain,format.dns1123SubdomainPrefix,format.labelValue () kubernetes.NamedFormat
format.qualifiedName,format.uri,format.uuid () kubernetes.NamedFormat
format.named (string) optional_type(kubernetes.NamedFormat)
getDate,getDayOfMonth,getDayOfWeek,getDayOfYear,getFullYear,getMonth .(Timestamp) int
getDate,getDayOfMonth,getDayOfWeek,getDayOfYear,getFullYear,getMonth .(Timestamp, string) int
getEscapedPath,getHost,getHostname,getPort,getScheme .(kubernetes.URL) string
getHours,getMilliseconds,getMinutes,getSeconds .(Timestamp) int
getHours,getMilliseconds,getMinutes,getSeconds .(Timestamp, string) int
getHours,getMilliseconds,getMinutes,getSeconds .(Duration) int
getQuery .(kubernetes.URL) map(string, list(string))
group .(kubernetes.authorization.Authorizer, string) kubernetes.authorization.GroupCheck
hasValue .(optional_type(V)) bool
indexOf,lastIndexOf .(list(A), A) int
indexOf,lastIndexOf .(string, string) int
indexOf,lastIndexOf .(string, string, int) int
int (int) int
int (double) int
int (Duration) int
int (string) int
int (Timestamp) int
int (uint) int
ip (string) net.IP
ip .(net.CIDR) net.IP
ip.isCanonical,isCIDR,isIP,isQuantity,isURL (string) bool
isGlobalUnicast,isLinkLocalMulticast,isLinkLocalUnicast,isLoopback,isUnspecified .(net.IP) bool
isGreaterThan,isLessThan .(kubernetes.Quantity, kubernetes.Quantity) bool
isGreaterThan,isLessThan .(kubernetes.Semver, kubernetes.Semver) bool
isInteger .(kubernetes.Quantity) bool
isSemver (string) bool
isSemver (string, bool) bool
isSorted .(list(Ordered)) bool
join .(list(string)) string
join .(list(string), string) string
lists.range (int) list(int)
lowerAscii,trim,upperAscii .(string) string
major,minor,patch .(kubernetes.Semver) int
masked .(net.CIDR) net.CIDR
matches (string, string) bool
matches .(string, string) bool
max,min .(list(Ordered)) Ordered
optional.none () optional_type(V)
optional.of,optional.ofNonZeroValue (V) optional_type(V)
optional.unwrap (list(optional_type(V))) list(V)
or .(optional_type(V), optional_type(V)) optional_type(V)
orValue .(optional_type(V), V) V
path .(kubernetes.authorization.Authorizer, string) kubernetes.authorization.PathCheck
prefixLength .(net.CIDR) int
quantity (string) kubernetes.Quantity
replace .(string, string, string) string
replace .(string, string, string, int) string
resource .(kubernetes.authorization.GroupCheck, string) kubernetes.authorization.ResourceCheck
semver (string) kubernetes.Semver
semver (string, bool) kubernetes.Semver
serviceAccount .(kubernetes.authorization.Authorizer, string, string) kubernetes.authorization.Authorizer
sets.contains,sets.equivalent,sets.intersects (list(T), list(T)) bool
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
sort .(list(Ordered)) list(Ordered)
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
substring .(string, int) string
substring .(string, int, int) string
sum .(list(int)) int
sum .(list(uint)) uint
sum .(list(double)) double
sum .(list(Duration)) Duration
timestamp (Timestamp) Timestamp
timestamp (int) Timestamp
timestamp (string) Timestamp
type (A) type(A)
uint (uint) uint
uint (double) uint
uint (int) uint
uint (string) uint
unwrapOpt .(list(optional_type(V))) list(V)
url (string) kubernetes.URL
validate .(kubernetes.NamedFormat, string) optional_type(list(string))
value .(optional_type(V)) V
"""

NEWEST: Final = """
includes .(dyn, dyn) bool
"""
"""Functions that Kubernetes 1.37 brought. An API server evaluates them in stored expressions, and takes
them in new ones a minor version later: until then it may be rolled back to one that lacks them."""
