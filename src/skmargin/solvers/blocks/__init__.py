"""The solver of many rows and few parameters: smoothed Newton steps, for which a pass over the rows is a sum."""
