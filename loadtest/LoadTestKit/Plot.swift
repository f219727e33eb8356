// Plots as inline SVG: no scripts, no fonts, nothing from elsewhere. Colours come from the page's style, so that they
// are right in the dark, too.
import Glibc  // logarithms: pure functions

/// A plot with one or two series over a numeric axis.
struct Plot {
  enum Scale { case linear, logarithmic }
  enum Mark { case line, bars, points }

  struct Series {
    var name: String
    /// A colour of the page: 1…4.
    var color: Int
    var mark: Mark
    var points: [(x: Double, y: Double)]
  }

  var title: String
  var xTitle: String
  var yTitle: String
  var xScale = Scale.linear
  var yScale = Scale.linear
  var xText: (Double) -> String = { Plot.short($0) }
  var yText: (Double) -> String = { Plot.short($0) }
  var series: [Series]
  /// A horizontal line: a bound.
  var limit: Double?
  private static let width = 480.0
  private static let height = 270.0
  private static let left = 70.0
  private static let right = 18.0
  private static let top = 16.0
  private static let bottom = 44.0

  init(
    _ title: String, x: String, y: String, xScale: Scale = .linear, yScale: Scale = .linear, series: [Series],
    limit: Double? = nil
  ) {
    self.title = title
    xTitle = x
    yTitle = y
    self.xScale = xScale
    self.yScale = yScale
    self.series = series
    self.limit = limit
  }

  /// A figure with its caption and legend; empty where there is nothing to show.
  var html: String {
    let xs = series.flatMap { $0.points.map(\.x) }
    let ys = series.flatMap { $0.points.map(\.y) } + (limit.map { [$0] } ?? [])
    guard let xRange = Axis(xs, xScale), let yRange = Axis(ys, yScale, fromZero: true) else { return "" }
    var svg =
      "<svg viewBox=\"0 0 \(Int(Plot.width)) \(Int(Plot.height))\" role=\"img\" aria-label=\"\(escaped(title))\">"
    svg += grid(xRange, yRange)
    for one in series { svg += draw(one, xRange, yRange) }
    if let limit {
      let y = pixel(limit, yRange, isX: false)
      svg +=
        "<line class=\"limit\" x1=\"\(Plot.left)\" x2=\"\(Plot.width - Plot.right)\" y1=\"\(n(y))\" y2=\"\(n(y))\"/>"
    }
    svg += "</svg>"
    // One series is what title and axes say.
    let legend =
      series.count < 2
      ? "" : series.map { "<span class=\"key c\($0.color)\">\(escaped($0.name))</span>" }.joined(separator: " ")
    return "<figure><figcaption>\(escaped(title))</figcaption>\(svg)<p class=\"legend\">\(legend)</p></figure>\n"
  }

  // MARK: Axes

  struct Axis {
    let low: Double
    let high: Double
    let scale: Scale

    /// `fromZero`: with 0 and some room, as an axis of values has it; else from the lowest to the highest.
    init?(_ values: [Double], _ scale: Scale, fromZero: Bool = false) {
      let usable = scale == .logarithmic ? values.filter { $0 > 0 } : values
      guard var low = usable.min(), var high = usable.max() else { return nil }
      if scale == .linear {
        if fromZero { low = min(0, low) }
        if high == low { high = low + 1 }
        high += fromZero ? (high - low) * 0.05 : 0
      } else if high < low * 1.5 {
        (low, high) = (low / 1.5, high * 1.5)
      } else if fromZero {
        // Nothing lies on the frame.
        (low, high) = (low / 1.3, high * 1.3)
      }
      self.low = low
      self.high = high
      self.scale = scale
    }

    /// 0…1
    func part(_ value: Double) -> Double {
      switch scale {
      case .linear: (value - low) / (high - low)
      case .logarithmic: (log(max(value, low)) - log(low)) / (log(high) - log(low))
      }
    }

    /// Where lines and numbers stand.
    var ticks: [Double] {
      switch scale {
      case .linear:
        let step = Axis.step((high - low) / 5)
        let first = Int((low / step).rounded(.up))
        let last = Int((high / step).rounded(.down))
        return first <= last ? (first...last).map { Double($0) * step } : []
      case .logarithmic:
        var ticks: [Double] = []
        var decade = pow(10, log10(low).rounded(.down))
        while decade <= high {
          for factor in [1.0, 2, 5] where decade * factor >= low && decade * factor <= high {
            ticks.append(decade * factor)
          }
          decade *= 10
        }
        return ticks.count > 9 ? ticks.filter { Axis.isDecade($0) } : ticks
      }
    }

    private static func isDecade(_ value: Double) -> Bool {
      let exponent = log10(value)
      return abs(exponent - exponent.rounded()) < 1e-9
    }

    /// 1, 2 or 5 times a power of ten.
    private static func step(_ wanted: Double) -> Double {
      let decade = pow(10, log10(wanted).rounded(.down))
      return decade * ([1.0, 2, 5, 10].first { $0 * decade >= wanted } ?? 10)
    }
  }

  private func pixel(_ value: Double, _ axis: Axis, isX: Bool) -> Double {
    isX
      ? Plot.left + axis.part(value) * (Plot.width - Plot.left - Plot.right)
      : Plot.height - Plot.bottom - axis.part(value) * (Plot.height - Plot.top - Plot.bottom)
  }

  private func grid(_ xAxis: Axis, _ yAxis: Axis) -> String {
    var svg = ""
    let base = Plot.height - Plot.bottom
    for tick in yAxis.ticks {
      let y = n(pixel(tick, yAxis, isX: false))
      svg += "<line class=\"grid\" x1=\"\(Plot.left)\" x2=\"\(Plot.width - Plot.right)\" y1=\"\(y)\" y2=\"\(y)\"/>"
      svg += "<text class=\"tick\" text-anchor=\"end\" x=\"\(Plot.left - 8)\" y=\"\(y)\" dy=\"4\">\(yText(tick))</text>"
    }
    for tick in xAxis.ticks {
      let x = n(pixel(tick, xAxis, isX: true))
      svg += "<line class=\"mark\" x1=\"\(x)\" x2=\"\(x)\" y1=\"\(base)\" y2=\"\(base + 4)\"/>"
      svg += "<text class=\"tick\" text-anchor=\"middle\" x=\"\(x)\" y=\"\(base + 17)\">\(xText(tick))</text>"
    }
    svg += "<line class=\"axis\" x1=\"\(Plot.left)\" x2=\"\(Plot.width - Plot.right)\" y1=\"\(base)\" y2=\"\(base)\"/>"
    let middle = (Plot.left + Plot.width - Plot.right) / 2
    svg +=
      "<text class=\"title\" text-anchor=\"middle\" x=\"\(middle)\" y=\"\(Plot.height - 6)\">\(escaped(xTitle))</text>"
    let up = (Plot.top + base) / 2
    svg +=
      "<text class=\"title\" text-anchor=\"middle\" transform=\"translate(14 \(up)) rotate(-90)\">\(escaped(yTitle))</text>"
    return svg
  }

  private func draw(_ one: Series, _ xAxis: Axis, _ yAxis: Axis) -> String {
    let usable = one.points.filter {
      (xScale == .linear || $0.x > 0) && (yScale == .linear || $0.y > 0)
    }
    let pixels = usable.map { (pixel($0.x, xAxis, isX: true), pixel($0.y, yAxis, isX: false)) }
    switch one.mark {
    case .line:
      let path = pixels.enumerated().map { "\($0 == 0 ? "M" : "L")\(n($1.0)) \(n($1.1))" }.joined()
      // One point alone would not be seen.
      return pixels.count == 1 ? dots(pixels, usable, one) : "<path class=\"line c\(one.color)\" d=\"\(path)\"/>"
    case .points:
      let path = pixels.enumerated().map { "\($0 == 0 ? "M" : "L")\(n($1.0)) \(n($1.1))" }.joined()
      return "<path class=\"line thin c\(one.color)\" d=\"\(path)\"/>" + dots(pixels, usable, one)
    case .bars:
      let base = Plot.height - Plot.bottom
      return pixels.enumerated().map { index, pixel in
        let next = index + 1 < pixels.count ? pixels[index + 1].0 : Plot.width - Plot.right
        let width = min(24, max(1, next - pixel.0 - 0.5))
        return "<rect class=\"c\(one.color)\" x=\"\(n(pixel.0))\" y=\"\(n(pixel.1))\" width=\"\(n(width))\" "
          + "height=\"\(n(max(0, base - pixel.1)))\"/>"
      }.joined()
    }
  }

  private func dots(_ pixels: [(Double, Double)], _ points: [(x: Double, y: Double)], _ one: Series) -> String {
    zip(pixels, points).map { pixel, point in
      "<circle class=\"c\(one.color)\" cx=\"\(n(pixel.0))\" cy=\"\(n(pixel.1))\" r=\"3.5\"><title>"
        + "\(escaped(one.name)): \(xText(point.x)), \(yText(point.y))</title></circle>"
    }.joined()
  }

  private func n(_ value: Double) -> String { decimals(value, 1) }

  /// 12,000 as 12k.
  static func short(_ value: Double) -> String {
    for (bound, unit) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] where abs(value) >= bound {
      return trimmed(value / bound) + unit
    }
    return trimmed(value)
  }

  private static func trimmed(_ value: Double) -> String {
    var text = decimals(value, abs(value) < 1 ? 3 : abs(value) < 10 ? 2 : 1)
    while text.contains("."), text.hasSuffix("0") || text.hasSuffix(".") {
      let last = text.removeLast()
      if last == "." { break }
    }
    return text
  }
}

func escaped(_ text: String) -> String {
  var output = ""
  for character in text {
    switch character {
    case "&": output += "&amp;"
    case "<": output += "&lt;"
    case ">": output += "&gt;"
    case "\"": output += "&quot;"
    case _: output.append(character)
    }
  }
  return output
}
