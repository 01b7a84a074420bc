"""What moves on screen: charts, the episode viewer and the expression field, as anywidgets."""
