// The accuracy that phones report, as a radius of a circular normal distribution.

/// The radius within which a position is with a probability of 68 %.
public enum AccuracyRadius {
  /// That radius in standard deviations of an axis: √(−2 ln 0.32), from the Rayleigh distribution.
  @inlinable public static var sigmas: Double { 1.5096 }
}
