"""Numba kernels: curvature of nodes in theta's coordinates -> the same in contrasts."""

from __future__ import annotations

import numpy as np

from mixedgm.compiled import inner, kernel

_LOOSE = {"reassoc", "contract"}
_SQUARE = 32


@kernel(fastmath=_LOOSE)
def turn(values, one, other, edges, bases, work, out):  # type: ignore[no-untyped-def]
    """Biases of levels and blocks of edges in the coordinates of one layout -> of the other.

    one, other = (width of nodes, their first term, start of blocks); of these widths the
    smaller is that of contrasts.  edges = (number of continuous nodes, pairs, group of every
    block); bases = (where that of a width begins, all of them row by row).
    """
    width, first, start = one
    to_width, to_first, to_start = other
    n_cont, pairs, group = edges
    of_width, table = bases
    n_cat = width.shape[0] - n_cont
    for k in range(n_cat + group.shape[0]):
        if k < n_cat:  # biases are like an edge with a number
            u, inner, to_inner = n_cont + k, 1, 1
            at, to = first[u], to_first[u]
        else:
            u, v = pairs[group[k - n_cat], 0], pairs[group[k - n_cat], 1]
            inner, to_inner = width[v], to_width[v]
            at, to = start[k - n_cat], to_start[k - n_cat]
        outer, to_outer = width[u], to_width[u]
        left, right = of_width[max(outer, to_outer)], of_width[max(inner, to_inner)]
        row, across = (outer, 1) if to_outer > outer else (1, to_outer)
        down, along = (inner, 1) if to_inner > inner else (1, to_inner)
        for i in range(to_outer):
            for b in range(inner):
                x = 0.0
                for a in range(outer):
                    x += table[left + i * row + a * across] * values[at + a * inner + b]
                work[b] = x
            for j in range(to_inner):
                x = 0.0
                for b in range(inner):
                    x += table[right + j * down + b * along] * work[b]
                out[to + i * to_inner + j] = x


@inner
def _write(packed, n_own, start, size, left, right, out):  # type: ignore[no-untyped-def]
    """One triangle of own contrasts to its places in the node's matrix, which begins at start.

    left and right = (first place, step from one own contrast to the next).
    """
    (to_row, row_step), (to_column, column_step) = left, right
    for s in range(n_own):
        row = start + (to_row + s * row_step) * size + to_column
        for t in range(n_own):
            low, high = min(s, t), max(s, t)
            x = packed[high * (high + 1) // 2 + low]
            out[np.uint64(row + t * column_step)] = x


@inner
def _mirror(start, size, out):  # type: ignore[no-untyped-def]
    """Upper triangle of a matrix to the lower one, square by square to stay in the cache."""
    for top in range(0, size, _SQUARE):
        for first in range(top, size, _SQUARE):
            for i in range(top, min(top + _SQUARE, size)):
                for j in range(max(first, i + 1), min(first + _SQUARE, size)):
                    out[np.uint64(start + j * size + i)] = out[np.uint64(start + i * size + j)]


@kernel(fastmath=_LOOSE)
def project(sums, first, scale, nodes, n_own, runs, bases, start, out):  # type: ignore[no-untyped-def]
    """Second derivatives of the named nodes, column by column -> the same in contrasts.

    A node has n_own = m contrasts of its own levels (a continuous node has m = 1).  Its sums, K x K
    triangles of an (m, m) matrix, of which columns a <= b count, begin at first[k].  runs =
    (run_ptr, local, columns, contrasts, own_first, of_width): the columns of the predictor, their
    contrasts, whether own contrasts are the outer ones in a run, and where the basis for so many
    columns begins.  Node v goes to start[v] of out.
    """
    run_ptr, local, columns, contrasts, own_first, of_width = runs
    for k in range(nodes.shape[0]):
        v, m = nodes[k], n_own[k]
        n_packed, n_columns, size = m * (m + 1) // 2, 0, 0
        for a in range(run_ptr[v], run_ptr[v + 1]):
            n_columns += columns[a]
            size += contrasts[a] * m
        length, from_a = n_columns * n_packed, 0
        half, total = np.empty(length), np.empty(n_packed)
        for a in range(run_ptr[v], run_ptr[v + 1]):
            # Within a run the lower triangle is wanted as well.
            for x in range(from_a, from_a + columns[a]):
                for y in range(x + 1, from_a + columns[a]):
                    low, high = first[k] + y * length, first[k] + x * length
                    for p in range(n_packed):
                        sums[low + x * n_packed + p] = sums[high + y * n_packed + p]
            step_a, begin = contrasts[a] if own_first[a] else 1, np.uint64(from_a * n_packed)
            for i in range(contrasts[a]):
                left = (local[a] + (i if own_first[a] else i * m), step_a)
                for x in range(columns[a]):
                    weight = scale * bases[of_width[columns[a]] + x * contrasts[a] + i]
                    source = np.uint64(first[k] + (from_a + x) * length)
                    for at in range(begin, np.uint64(length)):
                        before = half[at] if x > 0 else 0.0
                        half[at] = before + weight * sums[source + at]
                from_b = from_a
                for b in range(a, run_ptr[v + 1]):
                    step_b = contrasts[b] if own_first[b] else 1
                    for j in range(contrasts[b]):
                        for y in range(columns[b]):
                            weight = bases[of_width[columns[b]] + y * contrasts[b] + j]
                            other = np.uint64((from_b + y) * n_packed)
                            for p in range(n_packed):
                                before = total[p] if y > 0 else 0.0
                                total[p] = before + weight * half[other + np.uint64(p)]
                        right = (local[b] + (j if own_first[b] else j * m), step_b)
                        _write(total, m, start[v], size, left, right, out)
                    from_b += columns[b]
            from_a += columns[a]
        _mirror(start[v], size, out)


@kernel
def index(incidence, nodes, groups, runs, touches):  # type: ignore[no-untyped-def]
    """Fill the runs of all nodes (``contrasts.Runs``), and what every block touches.

    nodes = (number of Gaussian ones, widths, widths in contrasts); groups = (pairs, first feature
    or -1, (start, size) of all blocks of contrasts).
    """
    target_ptr, predictor, group, feature = incidence
    n_cont, width, narrow = nodes
    pairs, first_feature, (block_start, block_size) = groups
    run_ptr, node_size, table = runs
    touch_node, touch_at = touches
    at, n_nodes = 0, width.shape[0]
    for v in range(n_nodes):
        run_ptr[v], here = at, 0
        n_own = 2 if v < n_cont else 1
        for m in range(target_ptr[v] - n_own, target_ptr[v + 1]):
            columns, contrasts, own_first, side = 1, 1, np.int64(0), np.int64(0)
            block = v if v < n_cont and m == target_ptr[v] - 2 else n_cont + v
            position, length = block_start[block], block_size[block]
            if m >= target_ptr[v]:
                u, g = predictor[m], group[m]
                columns, contrasts = width[u], narrow[u]
                own_first, side = np.int64(pairs[g, 0] == v), np.int64(pairs[g, 1] == v)
                block = n_cont + n_nodes + g
                turn = feature[m] - first_feature[g]
                length = contrasts * narrow[v]
                position = block_start[block] + turn * length
            table[0, at], table[1, at], table[2, at] = here, position, length
            table[3, at], table[4, at], table[5, at] = columns, contrasts, own_first
            table[6, at], table[7, at] = block, side
            if touch_node[block, side] < 0:  # a deviation may have several runs
                touch_node[block, side], touch_at[block, side] = v, here
            here += length
            at += 1
        node_size[v] = here
    run_ptr[n_nodes] = at


@kernel
def carry(old, new, runs, source, level, out):  # type: ignore[no-untyped-def]
    """Copy what two runs of a node have together to their new places, and eigendecompositions.

    old and new = (block start, size, touch_node, touch_at), (matrix start, node size), eigen start;
    old has its (matrices, vectors, values) as well.  runs = (run_ptr, local, length, block, side);
    source[b] is the number that block b had, or -1 for a new one: it has level[b] on the diagonal
    in each node that it touches.
    """
    (old_block, _, _, old_touch), (old_start, old_size), old_eigen, known = old
    (block_start, size, touch_node, touch_at), (start, node_size), eigen = new
    run_ptr, local, length, block, side = runs
    matrices, vectors, values = out
    for v in range(node_size.shape[0]):
        for a in range(run_ptr[v], run_ptr[v + 1]):
            at = local[a] - touch_at[block[a], side[a]]
            from_a = source[block[a]]
            for i in range(length[a]):
                row = start[v] + (local[a] + i) * node_size[v]
                if from_a < 0:
                    matrices[row + local[a] + i] = level[block[a]]
                    continue
                old_row = old_start[v] + (old_touch[from_a, side[a]] + at + i) * old_size[v]
                for b in range(run_ptr[v], run_ptr[v + 1]):
                    from_b = source[block[b]]
                    if from_b < 0:
                        continue
                    shift = local[b] - touch_at[block[b], side[b]]
                    begin = old_row + old_touch[from_b, side[b]] + shift
                    for j in range(length[b]):
                        matrices[row + local[b] + j] = known[0][begin + j]
    for b in range(size.shape[0]):
        n, to, at = size[b], block_start[b], eigen[b]
        if source[b] < 0:
            times = np.int64(touch_node[b, 0] >= 0) + np.int64(touch_node[b, 1] >= 0)
            for i in range(n):
                values[to + i] = times * level[b]
                vectors[at + i * (n + 1)] = 1.0
            continue
        for i in range(n):
            values[to + i] = known[2][old_block[source[b]] + i]
        for i in range(n * n):
            vectors[at + i] = known[1][old_eigen[source[b]] + i]


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
