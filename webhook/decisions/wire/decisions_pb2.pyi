from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ClientFrame(_message.Message):
    __slots__ = ("hello", "batch", "bye")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    BYE_FIELD_NUMBER: _ClassVar[int]
    hello: ClientHello
    batch: Batch
    bye: Bye
    def __init__(self, hello: _Optional[_Union[ClientHello, _Mapping]] = ..., batch: _Optional[_Union[Batch, _Mapping]] = ..., bye: _Optional[_Union[Bye, _Mapping]] = ...) -> None: ...

class ServerFrame(_message.Message):
    __slots__ = ("hello", "ack", "error")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    hello: ServerHello
    ack: Ack
    error: Refusal
    def __init__(self, hello: _Optional[_Union[ServerHello, _Mapping]] = ..., ack: _Optional[_Union[Ack, _Mapping]] = ..., error: _Optional[_Union[Refusal, _Mapping]] = ...) -> None: ...

class ClientHello(_message.Message):
    __slots__ = ("protocols", "pod_uid", "process", "pod", "acknowledged")
    PROTOCOLS_FIELD_NUMBER: _ClassVar[int]
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    protocols: _containers.RepeatedScalarFieldContainer[int]
    pod_uid: str
    process: str
    pod: str
    acknowledged: int
    def __init__(self, protocols: _Optional[_Iterable[int]] = ..., pod_uid: _Optional[str] = ..., process: _Optional[str] = ..., pod: _Optional[str] = ..., acknowledged: _Optional[int] = ...) -> None: ...

class ServerHello(_message.Message):
    __slots__ = ("protocol", "acknowledged")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    acknowledged: int
    def __init__(self, protocol: _Optional[int] = ..., acknowledged: _Optional[int] = ...) -> None: ...

class Batch(_message.Message):
    __slots__ = ("ndjson", "records")
    NDJSON_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    ndjson: bytes
    records: _containers.RepeatedCompositeFieldContainer[Record]
    def __init__(self, ndjson: _Optional[bytes] = ..., records: _Optional[_Iterable[_Union[Record, _Mapping]]] = ...) -> None: ...

class Bye(_message.Message):
    __slots__ = ("last_sequence",)
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    last_sequence: int
    def __init__(self, last_sequence: _Optional[int] = ...) -> None: ...

class Ack(_message.Message):
    __slots__ = ("sequence",)
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    def __init__(self, sequence: _Optional[int] = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("code", "message")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class Record(_message.Message):
    __slots__ = ("spec_version", "event_type", "id", "sequence", "timestamp", "pod_uid", "pod", "pod_namespace", "node", "process", "labels", "enforcement_point", "request_uid", "audit_id", "verdict", "allowed", "code", "operation", "dry_run", "results", "errors", "constraints_evaluated", "undecided", "excused", "memo", "failure_policy", "resource_group", "resource_api_version", "resource_kind", "resource_namespace", "resource_name", "resource_labels", "request_resource", "request_subresource", "request_username", "request_user_uid", "request_user_groups", "policy_digest", "policy_revision", "duration_ns", "queue_duration_ns", "object", "old_object", "user_info", "request_options", "masked", "truncated", "mutation", "external_data", "reviewed", "violations", "event", "details")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class ResourceLabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SPEC_VERSION_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    POD_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    ENFORCEMENT_POINT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_UID_FIELD_NUMBER: _ClassVar[int]
    AUDIT_ID_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINTS_EVALUATED_FIELD_NUMBER: _ClassVar[int]
    UNDECIDED_FIELD_NUMBER: _ClassVar[int]
    EXCUSED_FIELD_NUMBER: _ClassVar[int]
    MEMO_FIELD_NUMBER: _ClassVar[int]
    FAILURE_POLICY_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_GROUP_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_API_VERSION_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_KIND_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_NAME_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_LABELS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_RESOURCE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_SUBRESOURCE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_USERNAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_USER_UID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_USER_GROUPS_FIELD_NUMBER: _ClassVar[int]
    POLICY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    POLICY_REVISION_FIELD_NUMBER: _ClassVar[int]
    DURATION_NS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_DURATION_NS_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    OLD_OBJECT_FIELD_NUMBER: _ClassVar[int]
    USER_INFO_FIELD_NUMBER: _ClassVar[int]
    REQUEST_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    MASKED_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    MUTATION_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_DATA_FIELD_NUMBER: _ClassVar[int]
    REVIEWED_FIELD_NUMBER: _ClassVar[int]
    VIOLATIONS_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    spec_version: str
    event_type: str
    id: str
    sequence: int
    timestamp: str
    pod_uid: str
    pod: str
    pod_namespace: str
    node: str
    process: str
    labels: _containers.ScalarMap[str, str]
    enforcement_point: str
    request_uid: str
    audit_id: str
    verdict: str
    allowed: bool
    code: int
    operation: str
    dry_run: bool
    results: _containers.RepeatedCompositeFieldContainer[Result]
    errors: _containers.RepeatedScalarFieldContainer[str]
    constraints_evaluated: int
    undecided: _containers.RepeatedCompositeFieldContainer[Undecided]
    excused: _containers.RepeatedCompositeFieldContainer[Result]
    memo: bool
    failure_policy: str
    resource_group: str
    resource_api_version: str
    resource_kind: str
    resource_namespace: str
    resource_name: str
    resource_labels: _containers.ScalarMap[str, str]
    request_resource: GroupVersionResource
    request_subresource: str
    request_username: str
    request_user_uid: str
    request_user_groups: _containers.RepeatedScalarFieldContainer[str]
    policy_digest: str
    policy_revision: int
    duration_ns: int
    queue_duration_ns: int
    object: _struct_pb2.Struct
    old_object: _struct_pb2.Struct
    user_info: _struct_pb2.Struct
    request_options: _struct_pb2.Struct
    masked: _containers.RepeatedScalarFieldContainer[str]
    truncated: _containers.RepeatedScalarFieldContainer[str]
    mutation: _struct_pb2.Struct
    external_data: _containers.RepeatedCompositeFieldContainer[_struct_pb2.Struct]
    reviewed: int
    violations: int
    event: str
    details: _struct_pb2.Struct
    def __init__(self, spec_version: _Optional[str] = ..., event_type: _Optional[str] = ..., id: _Optional[str] = ..., sequence: _Optional[int] = ..., timestamp: _Optional[str] = ..., pod_uid: _Optional[str] = ..., pod: _Optional[str] = ..., pod_namespace: _Optional[str] = ..., node: _Optional[str] = ..., process: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., enforcement_point: _Optional[str] = ..., request_uid: _Optional[str] = ..., audit_id: _Optional[str] = ..., verdict: _Optional[str] = ..., allowed: _Optional[bool] = ..., code: _Optional[int] = ..., operation: _Optional[str] = ..., dry_run: _Optional[bool] = ..., results: _Optional[_Iterable[_Union[Result, _Mapping]]] = ..., errors: _Optional[_Iterable[str]] = ..., constraints_evaluated: _Optional[int] = ..., undecided: _Optional[_Iterable[_Union[Undecided, _Mapping]]] = ..., excused: _Optional[_Iterable[_Union[Result, _Mapping]]] = ..., memo: _Optional[bool] = ..., failure_policy: _Optional[str] = ..., resource_group: _Optional[str] = ..., resource_api_version: _Optional[str] = ..., resource_kind: _Optional[str] = ..., resource_namespace: _Optional[str] = ..., resource_name: _Optional[str] = ..., resource_labels: _Optional[_Mapping[str, str]] = ..., request_resource: _Optional[_Union[GroupVersionResource, _Mapping]] = ..., request_subresource: _Optional[str] = ..., request_username: _Optional[str] = ..., request_user_uid: _Optional[str] = ..., request_user_groups: _Optional[_Iterable[str]] = ..., policy_digest: _Optional[str] = ..., policy_revision: _Optional[int] = ..., duration_ns: _Optional[int] = ..., queue_duration_ns: _Optional[int] = ..., object: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., old_object: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., user_info: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., request_options: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., masked: _Optional[_Iterable[str]] = ..., truncated: _Optional[_Iterable[str]] = ..., mutation: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., external_data: _Optional[_Iterable[_Union[_struct_pb2.Struct, _Mapping]]] = ..., reviewed: _Optional[int] = ..., violations: _Optional[int] = ..., event: _Optional[str] = ..., details: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class GroupVersionResource(_message.Message):
    __slots__ = ("group", "version", "resource")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    group: str
    version: str
    resource: str
    def __init__(self, group: _Optional[str] = ..., version: _Optional[str] = ..., resource: _Optional[str] = ...) -> None: ...

class Result(_message.Message):
    __slots__ = ("constraint", "template", "target", "enforcement_action", "enforcement_actions", "message", "details", "cause", "template_generation", "exception", "existing")
    CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    ENFORCEMENT_ACTION_FIELD_NUMBER: _ClassVar[int]
    ENFORCEMENT_ACTIONS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    EXCEPTION_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    constraint: Constraint
    template: str
    target: str
    enforcement_action: str
    enforcement_actions: _containers.RepeatedScalarFieldContainer[str]
    message: str
    details: _struct_pb2.Value
    cause: str
    template_generation: int
    exception: Exception
    existing: bool
    def __init__(self, constraint: _Optional[_Union[Constraint, _Mapping]] = ..., template: _Optional[str] = ..., target: _Optional[str] = ..., enforcement_action: _Optional[str] = ..., enforcement_actions: _Optional[_Iterable[str]] = ..., message: _Optional[str] = ..., details: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., cause: _Optional[str] = ..., template_generation: _Optional[int] = ..., exception: _Optional[_Union[Exception, _Mapping]] = ..., existing: _Optional[bool] = ...) -> None: ...

class Exception(_message.Message):
    __slots__ = ("kind", "namespace", "name", "effect", "reason", "ticket", "owner", "expires")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_FIELD_NUMBER: _ClassVar[int]
    kind: str
    namespace: str
    name: str
    effect: str
    reason: str
    ticket: str
    owner: str
    expires: str
    def __init__(self, kind: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., effect: _Optional[str] = ..., reason: _Optional[str] = ..., ticket: _Optional[str] = ..., owner: _Optional[str] = ..., expires: _Optional[str] = ...) -> None: ...

class Undecided(_message.Message):
    __slots__ = ("constraint", "template", "target", "cause", "answer", "message")
    CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    constraint: Constraint
    template: str
    target: str
    cause: str
    answer: str
    message: str
    def __init__(self, constraint: _Optional[_Union[Constraint, _Mapping]] = ..., template: _Optional[str] = ..., target: _Optional[str] = ..., cause: _Optional[str] = ..., answer: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class Constraint(_message.Message):
    __slots__ = ("group", "version", "kind", "name", "generation", "annotations")
    class AnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    group: str
    version: str
    kind: str
    name: str
    generation: int
    annotations: _containers.ScalarMap[str, str]
    def __init__(self, group: _Optional[str] = ..., version: _Optional[str] = ..., kind: _Optional[str] = ..., name: _Optional[str] = ..., generation: _Optional[int] = ..., annotations: _Optional[_Mapping[str, str]] = ...) -> None: ...
