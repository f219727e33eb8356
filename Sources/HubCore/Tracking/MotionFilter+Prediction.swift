// Where the motion leads until the next fix, and how uncertain that is.

extension MotionFilter {
  /// The state `dt` seconds on. `isStandstill`: the driver stood before, and stands now.
  mutating func predict(dt: Double, nominal: Double, isStandstill: Bool) {
    let overstated = min(1, noiseScale * (1 / MotionFilter.usualNoise))
    let biasVariance = nominal * overstated * MotionFilter.biasShare * MotionFilter.biasShare
    guard dt <= MotionFilter.longestGap else {
      (velocity, bias) = (.zero, .zero)
      covariance = Covariance(
        position: MotionFilter.lostVariance, velocity: MotionFilter.unknownVelocity, bias: biasVariance)
      return
    }
    advance(dt)
    let noise = nominal * noiseScale
    if isStandstill {
      covariance.predict(
        dt: dt, q: MotionFilter.standstillDensity, drift: dt * MotionFilter.driftPerNoiseStanding * noise)
    } else {
      let manoeuvres = MotionFilter.accelerationDensity * min(max(dt, 1), MotionFilter.longestManoeuvre)
      covariance.predict(
        dt: dt, q: min(manoeuvres, isOfOneFix ? .infinity : MotionFilter.gapDensity / dt),
        drift: dt * (MotionFilter.driftMoving + MotionFilter.driftPerNoise * noise))
    }
    let kept = MotionFilter.biasSeconds / (MotionFilter.biasSeconds + dt)
    bias *= kept
    covariance.fadeBias(kept: kept, added: biasVariance * (1 - kept * kept))
  }

  /// Moves the estimate by its velocity for `dt` seconds.
  ///
  /// With positions only, a straight prediction leaves a bend on its outer side, fix after fix. So the velocity keeps
  /// turning at its last rate (Bar-Shalom et al. (2001), §11.7), if that changes it by more than its standard deviation
  /// (or scatter would bend a straight road) and by less than a car can. `Doubt` assumes a linear prediction, so the
  /// velocity does not turn while a position is in doubt, nor while positions are refused.
  @inline(__always) private mutating func advance(_ dt: Double) {
    var way = velocity * dt
    if !hasVelocity, turnRate != 0, rejections == 0, doubt.variance == 0, dt <= VelocityLatency.longestStep {
      let turned = Double(turnRate) * TrackMath.radiansPerDegree * dt
      let change = turned * turned * (velocity * velocity).sum()
      let most = MotionFilter.hardestBraking * dt
      if change > covariance.p11, change < most * most {
        let before = velocity
        velocity = MotionFilter.turned(velocity, by: turned)
        way = (before + velocity) * (dt / 2)
      }
    }
    shift(by: way)
  }

  /// Rotates by 2 atan(`radians` / 2) to the right: exact in length, and in angle to 1 % up to 20°.
  private static func turned(_ velocity: SIMD2<Double>, by radians: Double) -> SIMD2<Double> {
    let half = radians / 2
    let norm = 1 / (1 + half * half)
    let (cosine, sine) = ((1 - half * half) * norm, 2 * half * norm)
    return SIMD2(cosine * velocity.x + sine * velocity.y, cosine * velocity.y - sine * velocity.x)
  }
}
