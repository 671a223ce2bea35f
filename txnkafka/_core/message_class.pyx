"""The methods of message classes: frozen objects with slots, built from keywords, compared by their fields.

``dataclasses`` compiles the source of six methods for each class, which takes more than half a millisecond; a
broker with its clients loads a hundred classes at its start. Here all classes share these functions.
"""
from cpython.dict cimport PyDict_GetItemWithError, PyDict_Size
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport Py_EQ, PyObject, PyObject_RichCompareBool
from cpython.ref cimport Py_INCREF, Py_XDECREF

from txnkafka._core.message_table cimport offset_in


cdef class Layout:
    """The fields of a class with the places of their slots in an object."""

    cdef tuple names, defaults, shown
    cdef Py_ssize_t count
    cdef Py_ssize_t* offsets

    def __cinit__(self, type cls not None, tuple names not None, tuple defaults not None, shown):
        cdef Py_ssize_t i
        if len(names) != len(defaults):
            raise ValueError(f"{len(defaults)} defaults for {len(names)} fields")
        self.names, self.defaults, self.shown = names, defaults, tuple(shown)
        self.count = len(names)
        self.offsets = <Py_ssize_t*>PyMem_Malloc((self.count + 1) * sizeof(Py_ssize_t))
        if self.offsets == NULL:
            raise MemoryError
        for i in range(self.count):
            self.offsets[i] = offset_in(cls, names[i])

    def __dealloc__(self):
        PyMem_Free(self.offsets)


cdef dict LAYOUTS = {}


cdef Layout layout_of(object owner):
    cdef PyObject* found = PyDict_GetItemWithError(LAYOUTS, type(owner))
    if found == NULL:
        raise TypeError(f"{type(owner).__name__} is no message class")
    return <Layout>found


cdef inline PyObject** slot(object owner, Layout layout, Py_ssize_t i) noexcept:
    return <PyObject**>(<char*><PyObject*>owner + layout.offsets[i])


cdef object value_of(object owner, Layout layout, Py_ssize_t i):
    cdef PyObject* found = slot(owner, layout, i)[0]
    if found == NULL:
        raise AttributeError(f"{type(owner).__name__}.{layout.names[i]} is not set")
    return <object>found


cdef tuple values_of(object owner, Layout layout):
    return tuple([value_of(owner, layout, i) for i in range(layout.count)])


def init(self, /, **values):
    """Set the fields; those that are not given get their defaults."""
    cdef Layout layout = layout_of(self)
    cdef Py_ssize_t i, given = 0
    cdef PyObject* value
    cdef PyObject* before
    for i in range(layout.count):
        value = PyDict_GetItemWithError(values, layout.names[i])
        if value == NULL:
            value = <PyObject*>layout.defaults[i]
        else:
            given += 1
        Py_INCREF(<object>value)
        before = slot(self, layout, i)[0]
        slot(self, layout, i)[0] = value
        Py_XDECREF(before)
    if given != PyDict_Size(values):
        unknown = ", ".join(sorted(set(values) - set(layout.names)))
        raise TypeError(f"{type(self).__name__} has no field {unknown}")


def equal(self, other):
    """Compare the fields with those of an object of the same class."""
    cdef Layout layout
    cdef Py_ssize_t i
    if type(other) is not type(self):
        return NotImplemented
    layout = layout_of(self)
    for i in range(layout.count):
        if not PyObject_RichCompareBool(value_of(self, layout, i), value_of(other, layout, i), Py_EQ):
            return False
    return True


def hashed(self):
    """Return the hash of the fields."""
    return hash(values_of(self, layout_of(self)))


def shown(self):
    """Return the class with its fields, except secrets."""
    cdef Layout layout = layout_of(self)
    pairs = zip(layout.names, values_of(self, layout), layout.shown)
    fields = ", ".join([f"{name}={value!r}" for name, value, is_shown in pairs if is_shown])
    return f"{type(self).__qualname__}({fields})"


def reduced(self):
    """Return what pickle and copy need."""
    cdef Layout layout = layout_of(self)
    return rebuilt, (type(self), dict(zip(layout.names, values_of(self, layout))))


def rebuilt(type cls not None, dict values not None):
    """Return a message that was pickled."""
    return cls(**values)


def refuse_set(self, name, value):
    """Raise AttributeError: messages are not changed."""
    raise AttributeError(f"{type(self).__name__}.{name} cannot be set: a message does not change")


def refuse_delete(self, name):
    """Raise AttributeError: messages are not changed."""
    raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted: a message does not change")


cdef dict METHODS = {
    "__init__": init,
    "__eq__": equal,
    "__hash__": hashed,
    "__repr__": shown,
    "__reduce__": reduced,
    "__setattr__": refuse_set,
    "__delattr__": refuse_delete,
}


def message_class(type cls not None, tuple names not None, tuple defaults not None, shown):
    """Return ``cls`` as a class with the slots ``names`` and these methods; ``shown`` has, for each field,
    whether ``repr`` contains it. Raises TypeError for a class with a base or with a method of these."""
    if cls.__bases__ != (object,):
        raise TypeError(f"{cls.__name__} has a base class; messages have none")
    body = {
        name: value
        for name, value in cls.__dict__.items()
        if name not in names and name not in ("__dict__", "__weakref__")
    }
    for name in METHODS:
        if name in body:
            raise TypeError(f"{cls.__name__}.{name} is the same for all messages")
    made = type(cls.__name__, (), {**body, **METHODS, "__slots__": names})
    made.__qualname__ = cls.__qualname__
    LAYOUTS[made] = Layout(made, names, defaults, shown)
    return made
