"""Numba kernels: curvature of nodes -> in contrasts, corrected by steps; descent on its model.

The model around theta is  g'd + d'Hd/2 + sum_g pull_g |theta_g + d_g|,  H a sum over nodes of dense
matrices, pull_g the penalty's derivative in the norm of a group.  Every block of theta (a node's
terms, or an edge group) is contiguous in theta and in each of the one or two nodes that it touches.
"""

from __future__ import annotations

import numpy as np

from mixedgm.compiled import inner, kernel
from mixedgm.penalty.kernels import block_distance, block_step

_LOOSE = {"reassoc", "contract"}
_SQUARE = 32
# A node learns nothing from a step that hardly moves it, nor where what it sees is so far from what
# its matrix says.
_NOTHING, _LEAST = 1e-20, 0.05


@kernel(fastmath=_LOOSE)
def turn(values, one, other, edges, bases, work, out):  # type: ignore[no-untyped-def]
    """Own terms and blocks of edges in the coordinates of one layout -> of the other.

    one, other = (width of nodes, their first term, how many own terms they have, start of blocks);
    of these widths the smaller is that of contrasts.  edges = (number of Gaussian nodes, pairs,
    group of every block); bases = (where that of a width begins, all of them row by row).
    """
    width, first, n_terms, start = one
    to_width, to_first, to_terms, to_start = other
    n_cont, pairs, group = edges
    of_width, table = bases
    n_cat = width.shape[0] - n_cont
    for k in range(n_cat + group.shape[0]):
        if k < n_cat:  # biases are like an edge with a number
            u, inner, to_inner = n_cont + k, 1, 1
            at, to = first[u], to_first[u]
            outer, to_outer = n_terms[u], to_terms[u]
            if outer == to_outer:  # a few terms of the whole distribution, not one of each level
                for i in range(outer):
                    out[to + i] = values[at + i]
                continue
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
                if outer == to_outer:  # numbers stay what they are
                    x = values[at + i * inner + b]
                else:
                    for a in range(outer):
                        x += table[left + i * row + a * across] * values[at + a * inner + b]
                work[b] = x
            for j in range(to_inner):
                x = 0.0
                if inner == to_inner:
                    x = work[j]
                else:
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

    A node has n_own = m contrasts of its own columns (m = 1 unless it has indicators).  Its sums,
    K x K triangles of an (m, m) matrix, of which columns a <= b count, begin at first[k].  runs =
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
                    weight = scale if x == i else 0.0
                    if contrasts[a] < columns[a]:
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
                            weight = 1.0 if y == j else 0.0
                            if contrasts[b] < columns[b]:
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

    nodes = (number of Gaussian ones, of scored ones, widths, widths in contrasts, own terms);
    groups = (pairs, first feature or -1, (start, size) of all blocks of contrasts).
    """
    target_ptr, predictor, group, feature = incidence
    n_cont, n_scored, width, narrow, n_terms = nodes
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
            if n_cont <= v < n_cont + n_scored:  # numbers to the others
                columns, contrasts = n_terms[v], length
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
def correct(runs, incidence, widths, bases, moved, changed, nodes):  # type: ignore[no-untyped-def]
    """Correct the matrix of every node, in place, by what a step changed in its own slopes.

    That is the update of Broyden, Fletcher, Goldfarb and Shanno, node by node (Griewank and Toint
    1982).  moved = the step, in contrasts; changed = (what it changed in the gradient, in
    contrasts, of which node terms count; and in the slopes of conditionals, in the incidence's
    order).  runs = (run_ptr, local, position, length, columns, contrasts, own_first), incidence =
    (target_ptr, entry_ptr), widths = those of nodes, and in contrasts.
    """
    run_ptr, local, position, length, columns, contrasts, own_first = runs
    target_ptr, entry_ptr = incidence
    width, narrow = widths
    of_width, table = bases
    of_terms, of_slopes = changed
    matrix_start, node_size, matrices = nodes
    half = np.empty(width.max())
    for v in range(node_size.shape[0]):
        size = node_size[v]
        step, change, image = np.empty(size), np.empty(size), np.zeros(size)
        first = run_ptr[v + 1] - (target_ptr[v + 1] - target_ptr[v])
        n_own, to_own, own_basis = width[v], narrow[v], of_width[width[v]]
        for a in range(run_ptr[v], run_ptr[v + 1]):
            for i in range(length[a]):
                step[local[a] + i] = moved[position[a] + i]
                change[local[a] + i] = of_terms[position[a] + i]
            if a < first:
                continue
            at, n, basis = entry_ptr[target_ptr[v] + a - first], contrasts[a], of_width[columns[a]]
            for i in range(n):
                for y in range(n_own):
                    total = of_slopes[at + i * n_own + y]
                    if n < columns[a]:
                        total = 0.0
                        for x in range(columns[a]):
                            total += table[basis + x * n + i] * of_slopes[at + x * n_own + y]
                    half[y] = total
                for j in range(to_own):
                    total = half[j]
                    if to_own < n_own:
                        total = 0.0
                        for y in range(n_own):
                            total += table[own_basis + y * to_own + j] * half[y]
                    change[local[a] + (j * n + i if own_first[a] else i * to_own + j)] = total
        bent, seen = 0.0, 0.0
        for i in range(size):
            row = matrix_start[v] + i * size
            for j in range(size):
                image[i] += matrices[row + j] * step[j]
            bent += step[i] * image[i]
            seen += step[i] * change[i]
        if not (bent > _NOTHING and _LEAST * bent < seen < bent / _LEAST):
            continue
        for i in range(size):
            row = matrix_start[v] + i * size
            for j in range(size):
                matrices[row + j] += change[i] * change[j] / seen - image[i] * image[j] / bent


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


# -- the quadratic model ---------------------------------------------------------------------------


@kernel
def descend(blocks, nodes, eigen, node_start, penalty, limits, grad, theta, product):  # type: ignore[no-untyped-def]
    """Coordinate descent on the model: once over all blocks, then some times over active ones.

    theta and product, which holds H d node by node, change in place.  penalty = (pull, scale)
    of every block, limits = (tol, sweeps over active blocks at most, as many more if they are
    expected to be enough, number of blocks that are always active).  Returns the sweeps made, the
    largest violation (divided by scale) of the model's optimality conditions that the first sweep
    met on its way, and that of the last sweep.
    """
    start, size = blocks[0], blocks[1]
    tol, most, more, always = limits
    n_blocks, largest = size.shape[0], 0
    order, n = np.empty(n_blocks, np.int64), n_blocks
    for b in range(n_blocks):
        order[b] = b
        largest = max(largest, size[b])
    work = np.empty((4, largest))
    first, last = 0.0, 0.0
    for used in range(1, most + more + 2):
        before = last
        last = _sweep(
            blocks, nodes, eigen, node_start, order[:n], penalty, grad, theta, product, work
        )
        if used == 1:
            first, n = last, always
            for b in range(always, n_blocks):
                for i in range(start[b], start[b] + size[b]):
                    if theta[i] != 0.0:
                        order[n] = b
                        n += 1
                        break
        if last <= (tol if used == 1 else 0.3 * tol):
            break
        if used > most and not last * (last / before) ** (most + more + 1 - used) <= 0.3 * tol:
            break
    return used, first, last


@inner
def _sweep(blocks, nodes, eigen, node_start, order, penalty, grad, theta, product, work):  # type: ignore[no-untyped-def]
    """One pass over the blocks in `order`; returns the largest violation met on the way."""
    start, size, touch_node, touch_at = blocks
    matrix_start, node_size, matrices = nodes
    eigen_start, vectors, values = eigen
    pull, yard = penalty
    g, c, rotated, new = work[0], work[1], work[2], work[3]
    worst = 0.0
    for b in order:
        m, first = size[b], start[b]
        for i in range(m):
            g[i] = grad[first + i]
            for k in range(2):
                v = touch_node[b, k]
                if v >= 0:
                    g[i] += product[node_start[v] + touch_at[b, k] + i]
        worst = max(worst, block_distance(g, theta, first, m, pull[b]) / yard[b])
        # c = Q'(H v - g), with H v through the eigenvectors.
        base = eigen_start[b]
        for i in range(m):
            rotated[i] = 0.0
            c[i] = 0.0
        for j in range(m):
            x, y = theta[first + j], g[j]
            for i in range(m):
                rotated[i] += vectors[base + j * m + i] * x
                c[i] -= vectors[base + j * m + i] * y
        for i in range(m):
            c[i] += values[first + i] * rotated[i]
        block_step(c, pull[b], values, first, m, new)
        for j in range(m):
            x = 0.0
            for i in range(m):
                x += vectors[base + j * m + i] * new[i]
            change = x - theta[first + j]
            if change == 0.0:
                continue
            theta[first + j] = x
            for k in range(2):
                v = touch_node[b, k]
                if v < 0:
                    continue
                row = np.uint64(matrix_start[v] + (touch_at[b, k] + j) * node_size[v])
                at = np.uint64(node_start[v])
                for i in range(np.uint64(0), np.uint64(node_size[v])):
                    product[at + i] += change * matrices[row + i]
    return worst


@kernel
def assemble(nodes, runs, where, out):  # type: ignore[no-untyped-def]
    """Add every node's matrix into the dense `out`; where[theta position] = row of out, or -1.

    runs = (first run of each node, position in the node, position in theta, length): a node's
    own terms and each of its groups are contiguous in both, and so in `out`.
    """
    matrix_start, node_size, matrices = nodes
    run_start, local, position, length = runs
    for v in range(node_size.shape[0]):
        for a in range(run_start[v], run_start[v + 1]):
            if length[a] == 0 or where[position[a]] < 0:
                continue
            for b in range(run_start[v], run_start[v + 1]):
                if length[b] == 0 or where[position[b]] < 0:
                    continue
                column = np.uint64(where[position[b]])
                for i in range(length[a]):
                    row = where[position[a]] + i
                    at = np.uint64(matrix_start[v] + (local[a] + i) * node_size[v] + local[b])
                    for j in range(length[b]):
                        out[row, column + np.uint64(j)] += matrices[at + np.uint64(j)]


@kernel
def node_products(nodes, runs, delta, out):  # type: ignore[no-untyped-def]
    """Every node's matrix times its part of delta, node by node in a row."""
    matrix_start, node_size, matrices = nodes
    run_start, local, position, length = runs
    at = 0
    for v in range(node_size.shape[0]):
        width = node_size[v]
        for i in range(width):
            row = matrix_start[v] + i * width
            total = 0.0
            for k in range(run_start[v], run_start[v + 1]):
                for j in range(length[k]):
                    total += matrices[row + local[k] + j] * delta[position[k] + j]
            out[at + i] = total
        at += width


@kernel
def take_out(nodes, runs, where, first, places, matrices_start, out):  # type: ignore[no-untyped-def]
    """Of every node's matrix, what belongs to the theta positions with where >= 0.

    Node v gets the square matrix at matrices_start[v] of `out`, whose rows are numbered, as by
    `where`, places[first[v] : first[v + 1]].
    """
    matrix_start, node_size, matrices = nodes
    run_start, local, position, length = runs
    here = np.empty(places.shape[0], np.int64)
    for v in range(node_size.shape[0]):
        k = first[v]
        for a in range(run_start[v], run_start[v + 1]):
            if length[a] == 0 or where[position[a]] < 0:
                continue
            for i in range(length[a]):
                places[k] = where[position[a]] + i
                here[k] = local[a] + i
                k += 1
        to = np.uint64(matrices_start[v])
        for a in range(first[v], k):
            row = np.uint64(matrix_start[v] + here[a] * node_size[v])
            for b in range(first[v], k):
                out[to] = matrices[row + np.uint64(here[b])]
                to += np.uint64(1)


@kernel(fastmath=_LOOSE)
def active_product(first, places, matrices_start, matrices, delta, out):  # type: ignore[no-untyped-def]
    """Out = H delta, with H as `take_out` left it."""
    out[:] = 0.0
    x = np.empty(places.shape[0])
    for v in range(first.shape[0] - 1):
        begin, size = first[v], first[v + 1] - first[v]
        for i in range(size):
            x[i] = delta[places[begin + i]]
        for i in range(size):
            row = np.uint64(matrices_start[v] + i * size)
            total = 0.0
            for j in range(size):
                total += matrices[row + np.uint64(j)] * x[np.uint64(j)]
            out[places[begin + i]] += total


@kernel(fastmath=_LOOSE)
def precondition(blocks, eigen, where, x, out):  # type: ignore[no-untyped-def]
    """Out = A_b^-1 x_b for every active block b, A_b given by its eigenvectors and values."""
    start, size, touch_node, touch_at = blocks
    eigen_start, vectors, values = eigen
    for b in range(start.shape[0]):
        m = size[b]
        if m == 0 or where[start[b]] < 0:
            continue
        first = where[start[b]]
        for i in range(m):
            out[first + i] = 0.0
        for k in range(m):
            total = 0.0
            for i in range(m):
                total += vectors[eigen_start[b] + i * m + k] * x[first + i]
            total /= values[start[b] + k]
            for i in range(m):
                out[first + i] += total * vectors[eigen_start[b] + i * m + k]
