"""Programs of ``message_reader`` and ``message_writer``: the fields of a struct in one version, in the order
of the wire, each with all that reading and writing it takes.

A struct is a class with slots or, for the logs' tables, a dictionary. Slots are read and set at their place
in the object, without the class being asked, so a table only accepts a class that has nothing but the slots.
"""
from reprlib import repr as short_repr

from cpython.object cimport PyObject, PyTypeObject

cdef extern from *:
    """
    #include <structmember.h>
    /* The place of a slot in an object, or 0 where the descriptor is not of a slot. */
    static Py_ssize_t txnkafka_slot_offset(PyObject *descriptor) {
        if (Py_TYPE(descriptor) != &PyMemberDescr_Type) return 0;
        PyMemberDef *member = ((PyMemberDescrObject *)descriptor)->d_member;
        return member->type == T_OBJECT_EX ? member->offset : 0;
    }
    """
    Py_ssize_t txnkafka_slot_offset(object descriptor)

cdef enum:
    MAX_TAGGED = 64  # bits of the writer's mask

# name: kind, size, lowest, highest; a bool is any number of its byte, unless strict
cdef dict NUMBERS = {
    "bool": (KIND_BOOL, 1, -(1 << 7), (1 << 7) - 1),
    "int8": (KIND_INT8, 1, -(1 << 7), (1 << 7) - 1),
    "int16": (KIND_INT16, 2, -(1 << 15), (1 << 15) - 1),
    "uint16": (KIND_UINT16, 2, 0, (1 << 16) - 1),
    "int32": (KIND_INT32, 4, -(1 << 31), (1 << 31) - 1),
    "int64": (KIND_INT64, 8, -(1 << 63), (1 << 63) - 1),
    "float64": (KIND_FLOAT64, 8, 0, 0),
    "uuid": (KIND_UUID, 16, 0, 0),
}
cdef dict OTHERS = {
    "string": KIND_STRING,
    "bytes": KIND_BYTES,
    "records": KIND_RECORDS,
    "array": KIND_ARRAY,
    "struct": KIND_STRUCT,
}


class SchemaError(ValueError):
    """Bytes or values that do not follow the table: ``path`` is the field (``members[2].client_id``),
    ``position`` the byte, or None for values."""

    def __init__(self, reason, position=None):
        super().__init__(reason)
        self.reason = reason
        self.position = position
        self.steps = []

    def inside(self, step):
        """Add a step to the path; every field and ``[index]`` that contains the fault calls it, innermost
        first."""
        self.steps.append(step)
        return self

    @property
    def path(self):
        return ".".join(filter(None, reversed(self.steps))).replace(".[", "[")

    def __reduce__(self):
        return (SchemaError, (self.reason, self.position), self.__dict__.copy())

    def __str__(self):
        field = f"{self.path}: " if self.steps else ""
        return f"{field}{self.reason}" + ("" if self.position is None else f" (byte {self.position})")


def misfit(str kind not None, value):
    """Return the error for a value that is no ``kind``, or is out of its range."""
    if value is None:
        return SchemaError("is null, which this version does not allow")
    if isinstance(value, int) and value.bit_length() > 64:
        return SchemaError(f"an integer of {value.bit_length()} bits is no {kind}")
    return SchemaError(f"{short_repr(value)} is no {kind}")


cdef class Part:
    """A field in one version, or what the elements of an array are.

    ``type`` is a name of ``wire.schema``, "array" or "struct". ``compact`` are lengths of flexible versions,
    ``strict`` the rules of the logs' tables. ``minimum_size`` and ``values``, of elements, are the least
    bytes of one, and the most Python values it becomes. ``make_default`` creates a default that can be
    changed.
    """

    def __init__(
        self,
        str name not None,
        str type not None,
        *,
        bint nullable=False,
        bint compact=False,
        bint strict=False,
        tag=None,
        default=None,
        make_default=None,
        Part element=None,
        Table table=None,
        Py_ssize_t minimum_size=1,
        Py_ssize_t values=1,
    ):
        self.name, self.type = name, type
        if type in NUMBERS:
            self.kind, self.size, self.lowest, self.highest = NUMBERS[type]
        else:
            self.kind = OTHERS[type]
        if (type == "array") != (element is not None) or (type == "struct") != (table is not None):
            raise TypeError(f"{name} is no {type}")
        if minimum_size < 1 or values < 1:
            raise ValueError(f"{name} takes neither bytes nor memory")
        self.nullable, self.compact, self.strict = nullable, compact, strict
        self.tag = -1 if tag is None else tag
        self.default, self.make_default = default, make_default
        self.element, self.table = element, table
        self.minimum_size, self.values = minimum_size, values

    cdef object default_value(self):
        return self.default if self.make_default is None else self.make_default()


cdef class Table:
    """A struct in one version: fields by position, tagged ones by their tags, and those that the version does
    not have, of which writers refuse other values than the default in ``refused``."""

    def __init__(
        self,
        type cls,
        *,
        bint flexible,
        tuple positional not None,
        tuple tagged not None,
        tuple absent not None = (),
        tuple refused not None = (),
    ):
        cdef Part part
        check_tags(tagged)
        for part in positional + tagged + absent + refused:
            if cls is not None:
                part.offset = offset_in(cls, part.name)
        self.cls, self.flexible = cls, flexible
        self.positional, self.tagged, self.absent, self.refused = positional, tagged, absent, refused
        if cls is not None:
            check_slots(cls, [part.name for part in positional + tagged + absent])


cdef int check_tags(tuple tagged) except -1:
    cdef Part part
    cdef Py_ssize_t last = -1
    for part in tagged:
        if part.tag <= last:
            raise ValueError(f"tag {part.tag} of {part.name} follows tag {last}")
        last = part.tag
    if len(tagged) > MAX_TAGGED:
        raise ValueError(f"{len(tagged)} tagged fields are more than {MAX_TAGGED}")
    return 0


cdef Py_ssize_t offset_in(type cls, str name) except -1:
    cdef Py_ssize_t offset = txnkafka_slot_offset(cls.__dict__[name])
    cdef Py_ssize_t last = (<PyTypeObject*>cls).tp_basicsize - <Py_ssize_t>sizeof(PyObject*)
    if offset < <Py_ssize_t>sizeof(PyObject) or offset > last:
        raise TypeError(f"{cls.__name__}.{name} is no slot")
    return offset


cdef int check_slots(type cls, list names) except -1:
    """An object that is allocated and has each slot set is complete."""
    cdef Py_ssize_t size = sizeof(PyObject) + len(names) * sizeof(PyObject*)
    if sorted(cls.__slots__) != sorted(names) or len(set(names)) != len(names) or cls.__base__ is not object:
        raise TypeError(f"{cls.__name__} has other slots than the fields {', '.join(names)}")
    if (<PyTypeObject*>cls).tp_basicsize != size or cls.__itemsize__ or "__new__" in cls.__dict__:
        raise TypeError(f"{cls.__name__} has more than its slots")
    return 0
