"""The Spark runtime: nodes, carriers, inputs, assignment tables. Only this package imports pyspark."""
