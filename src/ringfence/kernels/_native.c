/* The loops of ringfence that NumPy cannot run in one pass. Buffers in, buffers out; nothing is kept.
 *
 * Each function has a NumPy twin of the same meaning in the file beside this one, which is the oracle of the tests and
 * serves where there was no compiler. Only the limited API is used: one build serves every Python from 3.11 on.
 * Every index is checked before the first byte is written; a wrong one raises IndexError and leaves the output alone.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { STAGE = 16384 }; /* bytes; half of the nearest cache */

/* Copy n items of `size` bytes that lie `stride` apart into one run; common widths as the numbers they are. */
static void copy_run(char *to, const char *from, int64_t size, int64_t stride, Py_ssize_t n) {
    switch (size) {
    case 1:
        for (Py_ssize_t i = 0; i < n; i++) to[i] = from[i * stride];
        break;
    case 4:
        for (Py_ssize_t i = 0; i < n; i++) memcpy(to + 4 * i, from + i * stride, 4);
        break;
    case 8:
        for (Py_ssize_t i = 0; i < n; i++) memcpy(to + 8 * i, from + i * stride, 8);
        break;
    default:
        for (Py_ssize_t i = 0; i < n; i++) memcpy(to + size * i, from + i * stride, (size_t)size);
    }
}

static int rows_fit(const int64_t *rows, Py_ssize_t count, int64_t limit) {
    for (Py_ssize_t i = 0; i < count; i++)
        if (rows[i] < 0 || rows[i] >= limit) return 0;
    return 1;
}

/* Take the writable buffers of a tuple; give how many were taken, short of `fields` with an error set. */
static Py_ssize_t take_all(PyObject *outs, Py_buffer *taken, Py_ssize_t fields) {
    Py_ssize_t f = 0;
    if (PyTuple_Size(outs) != fields) {
        PyErr_SetString(PyExc_ValueError, "gather: expected one output a span");
        return 0;
    }
    for (; f < fields; f++)
        if (PyObject_GetBuffer(PyTuple_GetItem(outs, f), &taken[f], PyBUF_WRITABLE) < 0) break;
    return f;
}

/* Copy whole windows of a few rows to a stage that stays in the nearest cache, then field by field from there: the first
 * loop does nothing but wait for memory, so that many waits overlap; the second does nothing but copy. */
static void copy_rows(const char *base, Py_ssize_t itemsize, const int64_t *row, Py_ssize_t count, int64_t reach,
                      const int64_t *span, const Py_buffer *outs, Py_ssize_t fields) {
    char stage[STAGE];
    const Py_ssize_t chunk = reach <= STAGE ? STAGE / reach : 0;
    for (Py_ssize_t start = 0; start < count; start += chunk ? chunk : 1) {
        const Py_ssize_t n = !chunk ? 1 : count - start < chunk ? count - start : chunk;
        const char *from = base + row[start] * itemsize;
        if (chunk) {
            for (Py_ssize_t i = 0; i < n; i++) memcpy(stage + i * reach, base + row[start + i] * itemsize, (size_t)reach);
            from = stage;
        }
        for (Py_ssize_t f = 0; f < fields; f++) {
            const int64_t size = span[2 * f + 1];
            copy_run((char *)outs[f].buf + start * size, from + span[2 * f], size, reach, n);
        }
    }
}

/* gather(records, itemsize, rows, spans, outs): spans is (k, 2) int64 of offset and bytes, outs a tuple of k buffers.
 * For each row i and span f: outs[f][i * bytes] = records[row * itemsize + offset]. */
static PyObject *gather(PyObject *self, PyObject *args) {
    Py_buffer records, rows, spans, *outs;
    PyObject *tuple;
    Py_ssize_t itemsize, taken = 0;
    int good = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*ny*y*O!", &records, &itemsize, &rows, &spans, &PyTuple_Type, &tuple)) return NULL;
    const Py_ssize_t count = rows.len / 8, fields = spans.len / 16;
    const int64_t *row = rows.buf, *span = spans.buf;
    outs = PyMem_Malloc((size_t)(fields + 1) * sizeof *outs);
    if (outs == NULL) PyErr_NoMemory();
    else taken = take_all(tuple, outs, fields);
    if (taken == fields && outs != NULL) {
        int64_t reach = 1;
        good = itemsize > 0;
        for (Py_ssize_t f = 0; f < fields; f++) {
            good = good && span[2 * f] >= 0 && span[2 * f + 1] > 0 && span[2 * f + 1] * count <= outs[f].len;
            if (span[2 * f] + span[2 * f + 1] > reach) reach = span[2 * f] + span[2 * f + 1];
        }
        good = good && records.len >= reach && rows_fit(row, count, (records.len - reach) / itemsize + 1);
        if (good) {
            Py_BEGIN_ALLOW_THREADS
            copy_rows(records.buf, itemsize, row, count, reach, span, outs, fields);
            Py_END_ALLOW_THREADS
        } else {
            PyErr_SetString(PyExc_IndexError, "gather: a row or a span lies outside its buffer");
        }
    }
    for (Py_ssize_t f = 0; f < taken; f++) PyBuffer_Release(&outs[f]);
    PyMem_Free(outs);
    PyBuffer_Release(&records);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&spans);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* nstep(records, itemsize, rows, room, ring, final_offset, reward_offset, reward_size, gammas, returns, steps)
 * ring is (slots, rows_each). returns is float64, steps is int64. */
static PyObject *nstep(PyObject *self, PyObject *args) {
    Py_buffer records, rows, room, gammas, returns, steps;
    Py_ssize_t itemsize, slots, rows_each, final_offset, reward_offset, reward_size;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*ny*y*(nn)nnny*w*w*", &records, &itemsize, &rows, &room, &slots, &rows_each,
                          &final_offset, &reward_offset, &reward_size, &gammas, &returns, &steps))
        return NULL;
    const Py_ssize_t count = rows.len / 8, n = gammas.len / 8;
    const int64_t *row = rows.buf, *left = room.buf;
    const double *gamma = gammas.buf;
    const int good = itemsize > 0 && slots > 0 && rows_each >= slots && (reward_size == 4 || reward_size == 8) &&
                     final_offset >= 0 && final_offset + 4 <= itemsize && reward_offset >= 0 &&
                     reward_offset + reward_size <= itemsize && room.len >= rows.len && returns.len >= rows.len &&
                     steps.len >= rows.len && rows_fit(row, count, records.len / itemsize);
    if (good) {
        Py_BEGIN_ALLOW_THREADS
        double *total = returns.buf;
        int64_t *used = steps.buf;
        const char *base = records.buf;
        for (Py_ssize_t i = 0; i < count; i++) {
            int64_t at = row[i], slot = row[i] % rows_each, k = 0;
            const int64_t last = left[i] < n ? left[i] : n;
            double sum = 0;
            for (; k < last;) {
                const char *record = base + at * itemsize;
                int32_t final;
                memcpy(&final, record + final_offset, 4);
                if (reward_size == 4) {
                    float reward;
                    memcpy(&reward, record + reward_offset, 4);
                    if (gamma[k] != 0) sum += gamma[k] * (double)reward;
                } else {
                    double reward;
                    memcpy(&reward, record + reward_offset, 8);
                    if (gamma[k] != 0) sum += gamma[k] * reward;
                }
                k++;
                if (final >= 0) break;
                at++;
                if (++slot >= slots) { at -= slots; slot = 0; }
            }
            total[i] = sum;
            used[i] = k;
        }
        Py_END_ALLOW_THREADS
    } else {
        PyErr_SetString(PyExc_IndexError, "nstep: a row or an offset lies outside its buffer");
    }
    PyBuffer_Release(&records);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&room);
    PyBuffer_Release(&gammas);
    PyBuffer_Release(&returns);
    PyBuffer_Release(&steps);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"gather", gather, METH_VARARGS, "Copy spans of records, one output run a span."},
    {"nstep", nstep, METH_VARARGS, "Sum discounted rewards up to n steps, an episode's end, or the newest step."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", "Compiled loops; see kernels.", -1, methods,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) { return PyModule_Create(&module); }
