"""The package as others receive it: built, checked and tried out from a wheel."""
