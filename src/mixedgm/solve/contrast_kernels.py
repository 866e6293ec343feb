"""Numba kernels: curvature of nodes in theta's coordinates -> the same in contrasts."""

from __future__ import annotations

import numpy as np

from mixedgm.compiled import inner, kernel

_LOOSE = {"reassoc", "contract"}


@kernel(fastmath=_LOOSE)
def project(matrices, nodes, run_ptr, wide, narrow, basis, bases, start, out):  # type: ignore[no-untyped-def]
    """The matrix M of every named node -> U'MU, U block-diagonal with the basis of each run.

    matrices holds the nodes one after the other, row-major; node v goes to start[v] of out.
    """
    at = 0
    for v in nodes:
        n_wide, n_narrow = 0, 0
        for k in range(run_ptr[v], run_ptr[v + 1]):
            n_wide += wide[k]
            n_narrow += narrow[k]
        half = np.zeros((n_narrow, n_wide))
        row, to = 0, 0
        for k in range(run_ptr[v], run_ptr[v + 1]):
            for i in range(wide[k]):
                source = np.uint64(at + (row + i) * n_wide)
                for j in range(narrow[k]):
                    x = bases[basis[k] + i * narrow[k] + j]
                    if x != 0.0:
                        for m in range(n_wide):
                            half[to + j, m] += x * matrices[source + np.uint64(m)]
            row += wide[k]
            to += narrow[k]
        for a in range(n_narrow):
            row, to = 0, start[v] + a * n_narrow
            for k in range(run_ptr[v], run_ptr[v + 1]):
                first = np.uint64(to)
                for i in range(wide[k]):
                    x = half[a, row + i]
                    source = np.uint64(basis[k] + i * narrow[k])
                    for j in range(narrow[k]):
                        out[first + np.uint64(j)] += x * bases[source + np.uint64(j)]
                row += wide[k]
                to += narrow[k]
        at += n_wide * n_wide


@inner(fastmath=_LOOSE)
def _own_levels(packed, scale, own, mixed, block):  # type: ignore[no-untyped-def]
    """V'NV for the symmetric N whose lower triangle is `packed`, times `scale`."""
    m = own.shape[0]
    mixed[:] = 0.0
    at = 0
    for k in range(m):
        for other in range(k + 1):
            x = packed[at] * scale
            for t in range(m):
                mixed[k, t] += x * own[other, t]
            if other < k:
                for t in range(m):
                    mixed[other, t] += x * own[k, t]
            at += 1
    block[:] = 0.0
    for k in range(m):
        for s in range(m):
            x = own[k, s]
            for t in range(m):
                block[s, t] += x * mixed[k, t]


@inner(fastmath=_LOOSE)
def _write(block, node, left, right, out):  # type: ignore[no-untyped-def]
    """One block of own levels to its places in the node's matrix, and to the mirrored ones.

    node = (start, size); left and right = (first place, step from one own level to the next).
    """
    start, size = node
    for s in range(block.shape[0]):
        row = left[0] + s * left[1]
        for t in range(block.shape[0]):
            column = right[0] + t * right[1]
            out[start + row * size + column] = block[s, t]
            out[start + column * size + row] = block[s, t]


@kernel(fastmath=_LOOSE)
def project_sums(sums, first, scale, nodes, n_levels, owns, runs, bases, start, out):  # type: ignore[no-untyped-def]
    """The same as `project` for softmax nodes, straight from the packed sums over the rows.

    The sums of nodes[k], (K, K, L (L - 1) / 2) of which columns a <= b count, begin at first[k].
    owns[n] is where the basis of levels 1 to n - 1 against level 0 begins in bases.  runs =
    (run_ptr, local, columns, contrasts, basis, own_first): predictor columns, their contrasts and
    basis, and whether own levels are the outer ones among a run's contrasts.
    """
    run_ptr, local, columns, contrasts, basis, own_first = runs
    for k in range(nodes.shape[0]):
        v, m = nodes[k], n_levels[k] - 1
        n_packed = m * (m + 1) // 2
        n_columns, size = 0, 0
        for a in range(run_ptr[v], run_ptr[v + 1]):
            n_columns += columns[a]
            size += contrasts[a] * m
        own = bases[owns[n_levels[k]] : owns[n_levels[k]] + m * m].reshape((m, m))
        packed = sums[first[k] : first[k] + n_columns * n_columns * n_packed].reshape(
            (n_columns, n_columns * n_packed)
        )
        half, total = np.empty(n_columns * n_packed), np.empty(n_packed)
        mixed, block = np.empty((m, m)), np.empty((m, m))
        node, from_a = (start[v], size), 0
        for a in range(run_ptr[v], run_ptr[v + 1]):
            # Within a run the lower triangle is wanted as well.
            for x in range(from_a, from_a + columns[a]):
                for y in range(x + 1, from_a + columns[a]):
                    for p in range(n_packed):
                        packed[y, x * n_packed + p] = packed[x, y * n_packed + p]
            for i in range(contrasts[a]):
                left = (
                    local[a] + (i if own_first[a] else i * m),
                    contrasts[a] if own_first[a] else 1,
                )
                begin = from_a * n_packed
                half[begin:] = 0.0
                for x in range(columns[a]):
                    weight = bases[basis[a] + x * contrasts[a] + i]
                    if weight != 0.0:
                        for y in range(begin, half.shape[0]):
                            half[y] += weight * packed[from_a + x, y]
                from_b = from_a
                for b in range(a, run_ptr[v + 1]):
                    for j in range(contrasts[b]):
                        total[:] = 0.0
                        for y in range(columns[b]):
                            weight = bases[basis[b] + y * contrasts[b] + j]
                            source = np.uint64((from_b + y) * n_packed)
                            if weight != 0.0:
                                for p in range(n_packed):
                                    total[p] += weight * half[source + np.uint64(p)]
                        _own_levels(total, scale, own, mixed, block)
                        right = (
                            local[b] + (j if own_first[b] else j * m),
                            contrasts[b] if own_first[b] else 1,
                        )
                        _write(block, node, left, right, out)
                    from_b += columns[b]
            from_a += columns[a]


@kernel
def carry_matrices(old, new, old_local, level, out):  # type: ignore[no-untyped-def]
    """Copy what two runs of a node have together to their new places.

    old = (start, size, matrices) of the nodes; new = (start, size, run_ptr, local, narrow);
    old_local[k] is where run k began, or -1 for a new one: it gets level[k] on its diagonal.
    """
    old_start, old_size, matrices = old
    start, size, run_ptr, local, narrow = new
    for v in range(size.shape[0]):
        for a in range(run_ptr[v], run_ptr[v + 1]):
            for i in range(narrow[a]):
                row = start[v] + (local[a] + i) * size[v]
                if old_local[a] < 0:
                    out[row + local[a] + i] = level[a]
                    continue
                old_row = old_start[v] + (old_local[a] + i) * old_size[v]
                for b in range(run_ptr[v], run_ptr[v + 1]):
                    if old_local[b] >= 0:
                        for j in range(narrow[b]):
                            out[row + local[b] + j] = matrices[old_row + old_local[b] + j]


@kernel
def carry_eigen(old, new, source, level, vectors, values):  # type: ignore[no-untyped-def]
    """Copy the eigendecomposition of every block; a new block is level[b] times the identity.

    old = (start, eigen_start, vectors, values); new = (start, size, eigen_start).
    """
    old_start, old_eigen, old_vectors, old_values = old
    start, size, eigen_start = new
    for b in range(size.shape[0]):
        for i in range(size[b]):
            if source[b] < 0:
                vectors[eigen_start[b] + i * size[b] + i] = 1.0
                values[start[b] + i] = level[b]
            else:
                values[start[b] + i] = old_values[old_start[source[b]] + i]
                for j in range(size[b]):
                    at = i * size[b] + j
                    vectors[eigen_start[b] + at] = old_vectors[old_eigen[source[b]] + at]


@kernel
def diagonal_blocks(which, blocks, nodes, out):  # type: ignore[no-untyped-def]
    """out[k] += the square of block which[k] in the matrix of every node that it touches."""
    _, _, touch_node, touch_at = blocks
    matrix_start, node_size, matrices = nodes
    for k in range(which.shape[0]):
        for side in range(2):
            v, at = touch_node[which[k], side], touch_at[which[k], side]
            if v < 0:
                continue
            for i in range(out.shape[1]):
                row = matrix_start[v] + (at + i) * node_size[v] + at
                for j in range(out.shape[1]):
                    out[k, i, j] += matrices[row + j]
