"""Numba kernels: exact group coordinate descent on a quadratic model held as node blocks.

The model around theta is  g'd + d'Hd/2 + sum_g pull_g |theta_g + d_g|,  H a sum over nodes of dense
matrices, pull_g the penalty's derivative in the norm of a group.  Every block of theta (a node's
terms, or an edge group) is contiguous in theta and in each of the one or two nodes that it touches.
"""

from __future__ import annotations

import numpy as np

from mixedgm.compiled import inner, kernel
from mixedgm.penalty.kernels import block_distance, block_step


@kernel
def descend(blocks, nodes, eigen, node_start, penalty, limits, grad, theta, product):  # type: ignore[no-untyped-def]
    """Coordinate descent on the model: once over all blocks, then some times over active ones.

    theta and product, which holds H d node by node, change in place.  penalty = (pull, scale)
    of every block, limits = (tol, sweeps over active blocks at most, number of blocks that
    are always active).  Returns the sweeps made, the largest violation (divided by scale) of the
    model's optimality conditions that the first sweep met on its way, and that of the last sweep.
    """
    start, size = blocks[0], blocks[1]
    tol, most, always = limits
    n_blocks, largest = size.shape[0], 0
    order, n = np.empty(n_blocks, np.int64), n_blocks
    for b in range(n_blocks):
        order[b] = b
        largest = max(largest, size[b])
    work = np.empty((4, largest))
    first, last = 0.0, 0.0
    for used in range(1, most + 2):
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
                width = node_size[v]
                row = matrix_start[v] + (touch_at[b, k] + j) * width
                at = node_start[v]
                for i in range(width):
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


@kernel(fastmath={"reassoc", "contract"})
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


@kernel(fastmath={"reassoc", "contract"})
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
