/* The loops of ringfence that NumPy cannot run in one pass. Buffers in, buffers out; nothing is kept.
 *
 * Each function has a NumPy twin of the same meaning in the file beside this one, which is the oracle of the tests and
 * serves where there was no compiler. Only the limited API is used: one build serves every Python from 3.11 on.
 * Every index is checked before the first byte is written; a wrong one raises IndexError and leaves the output alone.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
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

enum { SOON = 6 }; /* windows to ask for before they are needed */

/* Ask for a record's first cache line, and for the one with what an n-step return reads of it. */
static inline void fetch_line(const char *record, int64_t offset) {
#if defined(__GNUC__)
    __builtin_prefetch(record);
    if (offset) __builtin_prefetch(record + offset);
#else
    (void)record;
    (void)offset;
#endif
}

/* nstep(records, itemsize, rows, room, ring, final_offset, reward_offset, reward_size, gammas, returns, steps, lasts)
 * ring is (slots, rows_each). returns are floats of reward_size bytes, steps and lasts (the rows of the last steps used)
 * are int64. */
static PyObject *nstep(PyObject *self, PyObject *args) {
    Py_buffer records, rows, room, gammas, returns, steps, lasts;
    Py_ssize_t itemsize, slots, rows_each, final_offset, reward_offset, reward_size;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*ny*y*(nn)nnny*w*w*w*", &records, &itemsize, &rows, &room, &slots, &rows_each,
                          &final_offset, &reward_offset, &reward_size, &gammas, &returns, &steps, &lasts))
        return NULL;
    const Py_ssize_t count = rows.len / 8, n = gammas.len / 8;
    const int64_t *row = rows.buf, *left = room.buf;
    const double *gamma = gammas.buf;
    const int good = itemsize > 0 && slots > 0 && rows_each >= slots && (reward_size == 4 || reward_size == 8) &&
                     final_offset >= 0 && final_offset + 4 <= itemsize && reward_offset >= 0 &&
                     reward_offset + reward_size <= itemsize && room.len >= rows.len &&
                     returns.len >= count * reward_size && steps.len >= rows.len && lasts.len >= rows.len &&
                     rows_fit(row, count, records.len / itemsize);
    if (good) {
        Py_BEGIN_ALLOW_THREADS
        int64_t *used = steps.buf, *last_row = lasts.buf;
        const char *base = records.buf;
        for (Py_ssize_t i = 0; i < count; i++) {
            if (i + SOON < count)
                for (int64_t record = 0; record <= n; record++)
                    fetch_line(base + (row[i + SOON] + record) * itemsize, record < n ? final_offset : 0);
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
                if (++k == last || final >= 0) break;
                at++;
                if (++slot >= slots) { at -= slots; slot = 0; }
            }
            if (reward_size == 4) ((float *)returns.buf)[i] = (float)sum;
            else ((double *)returns.buf)[i] = sum;
            used[i] = k;
            last_row[i] = at;
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
    PyBuffer_Release(&lasts);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* -- Sum trees. `nodes` holds one level behind the other, the leaves first, all of whole nodes of 16; `starts` says where
 * each begins, and where the last ends. `lows` holds, for all levels but the leaves, the smallest leaf below a node that
 * is not 0, or nothing at all. Every sum is made in the order of the NumPy twin. */

enum { FAN = 16, SHIFT = 4, LANES = 4, AHEAD = 16 };

/* Ask for the two cache lines of a node's children some items before they are needed. Finding 256 of 1 M leaves takes
 * 15 instead of 23 us with it, of 10 M 20 instead of 35; setting them 7 instead of 12, and 13 instead of 22. */
static inline void fetch(const double *level, int64_t node) {
#if defined(__GNUC__)
    __builtin_prefetch(level + node * FAN);
    __builtin_prefetch(level + node * FAN + 8);
#else
    (void)level;
    (void)node;
#endif
}

typedef struct {
    double *nodes, *lows; /* lows is NULL where the smallest leaf is not asked for */
    const int64_t *starts;
    Py_ssize_t levels;
} Tree;

/* Make a tree of its buffers; 0 if they do not fit each other. */
static int tree_of(Tree *tree, const Py_buffer *nodes, const Py_buffer *lows, const Py_buffer *starts) {
    const int64_t *start = starts->buf;
    const Py_ssize_t levels = starts->len / 8 - 1;
    if (levels < 1 || start[0] != 0 || start[levels] * 8 != nodes->len) return 0;
    for (Py_ssize_t l = 0; l < levels; l++) {
        const int64_t size = start[l + 1] - start[l];
        if (size <= 0 || size % FAN) return 0;
        if (l && size < (start[l] - start[l - 1]) / FAN) return 0;
    }
    tree->nodes = nodes->buf;
    tree->lows = lows != NULL && lows->len ? lows->buf : NULL;
    tree->starts = start;
    tree->levels = levels;
    return tree->lows == NULL || lows->len == (start[levels] - start[1]) * 8;
}

static double sum_of(const double *child) {
    double half[8];
    for (int i = 0; i < 8; i++) half[i] = child[i] + child[i + 8];
    for (int i = 0; i < 4; i++) half[i] += half[i + 4];
    half[0] += half[2];
    half[1] += half[3];
    return half[0] + half[1];
}

/* Compute one node of the level above `level` from its children. */
static inline void mend_node(const Tree *tree, Py_ssize_t level, int64_t node) {
    const int64_t *start = tree->starts;
    const double *child = tree->nodes + start[level] + node * FAN;
    tree->nodes[start[level + 1] + node] = sum_of(child);
    if (tree->lows != NULL) {
        double low = HUGE_VAL;
        if (level == 0) {
            for (int i = 0; i < FAN; i++) low = child[i] > 0 && child[i] < low ? child[i] : low;
        } else {
            child = tree->lows + (start[level] - start[1]) + node * FAN;
            for (int i = 0; i < FAN; i++) low = child[i] < low ? child[i] : low;
        }
        tree->lows[start[level + 1] - start[1] + node] = low;
    }
}

/* tree_put(nodes, lows, starts, size, rows, values): set leaves below `size`, then the nodes above them, level by level
 * for all of them, so that their waits for memory overlap. */
static PyObject *tree_put(PyObject *self, PyObject *args) {
    Py_buffer nodes, lows, starts, rows, values;
    Py_ssize_t size;
    Tree tree;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*w*y*ny*y*", &nodes, &lows, &starts, &size, &rows, &values)) return NULL;
    const Py_ssize_t count = rows.len / 8;
    const int64_t *row = rows.buf;
    const double *value = values.buf;
    const int good = tree_of(&tree, &nodes, &lows, &starts) && size <= tree.starts[1] && values.len == rows.len &&
                     rows_fit(row, count, size);
    if (good) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < count; i++) {
            if (i + AHEAD < count) fetch(tree.nodes, row[i + AHEAD] >> SHIFT);
            tree.nodes[row[i]] = value[i];
        }
        for (Py_ssize_t l = 0; l + 1 < tree.levels; l++) {
            const int shift = (int)(SHIFT * (l + 1));
            for (Py_ssize_t i = 0; i < count; i++) {
                if (i + AHEAD < count) fetch(tree.nodes + tree.starts[l], row[i + AHEAD] >> shift);
                mend_node(&tree, l, row[i] >> shift);
            }
        }
        Py_END_ALLOW_THREADS
    } else {
        PyErr_SetString(PyExc_IndexError, "tree_put: a row lies outside its tree");
    }
    PyBuffer_Release(&nodes);
    PyBuffer_Release(&lows);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&values);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* tree_mend(nodes, lows, starts, first, last): compute the nodes above the leaves from first to last - 1. */
static PyObject *tree_mend(PyObject *self, PyObject *args) {
    Py_buffer nodes, lows, starts;
    Py_ssize_t first, last;
    Tree tree;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*w*y*nn", &nodes, &lows, &starts, &first, &last)) return NULL;
    const int good = tree_of(&tree, &nodes, &lows, &starts) && first >= 0 && first < last && last <= tree.starts[1];
    if (good) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t l = 0; l + 1 < tree.levels; l++)
            for (int64_t node = first >> (SHIFT * (l + 1)); node <= (last - 1) >> (SHIFT * (l + 1)); node++)
                mend_node(&tree, l, node);
        Py_END_ALLOW_THREADS
    } else {
        PyErr_SetString(PyExc_IndexError, "tree_mend: a row lies outside its tree");
    }
    PyBuffer_Release(&nodes);
    PyBuffer_Release(&lows);
    PyBuffer_Release(&starts);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* tree_running(nodes, starts, prefix): the running sums of the topmost level. */
static PyObject *tree_running(PyObject *self, PyObject *args) {
    Py_buffer nodes, starts, prefix;
    Tree tree;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*w*", &nodes, &starts, &prefix)) return NULL;
    int good = tree_of(&tree, &nodes, NULL, &starts);
    if (good) {
        const int64_t first = tree.starts[tree.levels - 1], size = tree.starts[tree.levels] - first;
        double *to = prefix.buf, sum = 0;
        good = prefix.len == size * 8;
        for (int64_t i = 0; good && i < size; i++) to[i] = sum += tree.nodes[first + i];
    }
    if (!good) PyErr_SetString(PyExc_IndexError, "tree_running: a buffer does not fit the tree");
    PyBuffer_Release(&nodes);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&prefix);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* Give the last child that is not 0. */
static int64_t last_of(const double *child, int64_t count) {
    int64_t k = count - 1;
    while (k > 0 && !(child[k] > 0)) k--;
    return k;
}

/* Find the top nodes of masses among running sums, without a branch to guess; `left` is what lies inside the node. */
static void find_top(const double *top, const double *prefix, int64_t size, const double *mass, Py_ssize_t count,
                     int64_t *at, double *left) {
    for (Py_ssize_t i = 0; i < count; i++) {
        const double *base = prefix;
        for (int64_t n = size; n > 1;) {
            const int64_t half = n / 2;
            base += (base[half - 1] <= mass[i]) * half;
            n -= half;
        }
        const int64_t k = base - prefix + (*base <= mass[i]);
        at[i] = k < size ? k : last_of(top, size);
        left[i] = k == 0 ? mass[i] : k < size ? mass[i] - prefix[k - 1] : HUGE_VAL;
    }
}

/* Go down one level from nodes `at`. Four masses go side by side: each is a chain of 16 additions that wait for each
 * other, and chains that do not know each other overlap. */
static void find_below(const double *level, int64_t nodes, Py_ssize_t count, int64_t *at, double *left) {
    for (Py_ssize_t i = 0; i < count; i += LANES) {
        const Py_ssize_t lanes = count - i < LANES ? count - i : LANES;
        for (Py_ssize_t t = i + AHEAD; t < i + AHEAD + LANES && t < count; t++) fetch(level, at[t]);
        const double *child[LANES];
        double sum[FAN + 1][LANES], mass[LANES];
        int64_t k[LANES] = {0};
        for (int t = 0; t < LANES; t++) {
            const Py_ssize_t item = t < lanes ? i + t : i;
            if (at[item] >= nodes) at[item] = nodes - 1; /* never, but for a node that is not its children's sum */
            child[t] = level + at[item] * FAN;
            mass[t] = left[item];
            sum[0][t] = 0;
        }
        for (int j = 0; j < FAN; j++)
            for (int t = 0; t < LANES; t++) {
                sum[j + 1][t] = sum[j][t] + child[t][j];
                k[t] += sum[j + 1][t] <= mass[t];
            }
        for (int t = 0; t < lanes; t++) {
            left[i + t] = k[t] < FAN ? mass[t] - sum[k[t]][t] : HUGE_VAL;
            at[i + t] = at[i + t] * FAN + (k[t] < FAN ? k[t] : last_of(child[t], FAN));
        }
    }
}

/* tree_find(nodes, starts, prefix, masses, rows, leaves): the leaf in which each mass lies, and its value. */
static PyObject *tree_find(PyObject *self, PyObject *args) {
    Py_buffer nodes, starts, prefix, masses, rows, leaves;
    Tree tree;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*w*", &nodes, &starts, &prefix, &masses, &rows, &leaves)) return NULL;
    const Py_ssize_t count = masses.len / 8;
    int good = tree_of(&tree, &nodes, NULL, &starts) && rows.len == masses.len && leaves.len == masses.len;
    if (good) {
        const int64_t first = tree.starts[tree.levels - 1], size = tree.starts[tree.levels] - first;
        int64_t *at = rows.buf;
        double *left = leaves.buf;
        good = prefix.len == size * 8;
        if (good) {
            Py_BEGIN_ALLOW_THREADS
            find_top(tree.nodes + first, prefix.buf, size, masses.buf, count, at, left);
            for (Py_ssize_t l = tree.levels - 2; l >= 0; l--) {
                const int64_t nodes_below = (tree.starts[l + 1] - tree.starts[l]) / FAN;
                find_below(tree.nodes + tree.starts[l], nodes_below, count, at, left);
            }
            for (Py_ssize_t i = 0; i < count; i++) left[i] = tree.nodes[at[i]];
            Py_END_ALLOW_THREADS
        }
    }
    if (!good) PyErr_SetString(PyExc_IndexError, "tree_find: a buffer does not fit the tree");
    PyBuffer_Release(&nodes);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&prefix);
    PyBuffer_Release(&masses);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&leaves);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"gather", gather, METH_VARARGS, "Copy spans of records, one output run a span."},
    {"nstep", nstep, METH_VARARGS, "Sum discounted rewards up to n steps, an episode's end, or the newest step."},
    {"tree_put", tree_put, METH_VARARGS, "Set leaves of a sum tree, and the nodes above them."},
    {"tree_mend", tree_mend, METH_VARARGS, "Compute the nodes above a range of leaves."},
    {"tree_running", tree_running, METH_VARARGS, "Sum up the topmost level of a sum tree, in order."},
    {"tree_find", tree_find, METH_VARARGS, "Find the leaves in which masses lie."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", "Compiled loops; see kernels.", -1, methods,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) { return PyModule_Create(&module); }
