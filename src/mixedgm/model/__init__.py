"""The mathematics of one model: parameter blocks, their flat layout, conditional densities."""
