// The cells that an area channel covers: one, or those of a circle or box, in a size that fits or that is requested.
import HubGeo
import HubMessages

enum AreaCovering {
  /// The target for cells of a view. A view that needs more at this size gets up to `HubLimits.cellsPerView` of the
  /// largest.
  private static let usualCells = 16

  /// The cells of a request and their audience; refuses too many. `isPeer`: another hub asks for this hub's drivers.
  static func watched(
    by role: Role, _ request: Subscribe, isPeer: Bool
  ) throws(ErrorReply) -> (AreaAudience, [GeohashCell]) {
    let (audience, cells): (AreaAudience, [GeohashCell]?) =
      if isPeer {
        (.peers, self.cells(of: request.channel, .ops))
      } else if request.channel.isOfCounts {
        (.counts, blocks(of: request.channel, precision: request.precision))
      } else if role == .ops {
        (.ops, self.cells(of: request.channel, precision: request.precision, .ops))
      } else {
        (.riders, self.cells(of: request.channel, .riders))
      }
    guard let cells else { throw ErrorReply(code: .badMessage, message: refusal(of: request)) }
    return (audience, cells)
  }

  /// The range of geohash characters that an audience may ask for.
  static func precisions(_ audience: Audience) -> ClosedRange<Int> {
    switch audience {
    case .riders: 5...8
    case .ops: Channel.areaPrecisions.lowerBound...Channel.areaPrecisions.upperBound
    }
  }

  /// What a view shows.
  private enum View {
    case circle(Coordinate, radiusMeters: Double)
    case box(BoundingBox)

    /// Nil above `limit`.
    func cells(_ precision: Int, atMost limit: Int) -> [GeohashCell]? {
      do throws(CoveringError) {
        switch self {
        case .circle(let center, let radius):
          return try GeohashCell.covering(center: center, radiusMeters: radius, precision: precision, limit: limit)
        case .box(let box): return try GeohashCell.covering(box, precision: precision, limit: limit)
        }
      } catch {
        return nil
      }
    }

    var squareMeters: Double {
      switch self {
      case .circle(_, let radius): .pi * radius * radius
      case .box(let box): box.squareMeters
      }
    }
  }

  /// The text of the error where there are too many cells.
  private static func refusal(of request: Subscribe) -> String {
    let (maximumCells, maximumBlocks) = (HubLimits.cellsPerView, HubLimits.blocksPerView)
    if case .counts = request.channel {
      return
        "that is more than \(maximumBlocks) blocks, or a box too narrow for its cells: take another box or precision"
    }
    if let precision = request.precision {
      return
        "that is more than \(maximumCells) cells of \(precision) characters: take a smaller view, or fewer characters"
    }
    if case .box = request.channel {
      return
        "it takes more than \(maximumCells) cells that are no larger than four times the box: take another box, or say "
        + "which precision"
    }
    return "so near to a pole the circle touches more than \(maximumCells) cells: take a smaller radius"
  }

  /// The cells; nil where there are too many, or the channel is no area. `precision`: the requested one, for all cells.
  ///
  /// A circle gets the smallest cells of which at most 16 touch it: for 1 km some 11 of 1.2 by 0.6 km, for 5 km some 9
  /// of 5 by 5 km. So what is sent stays within some 2.5 times its area. A box is covered likewise; cells for ops are
  /// at most four times as large as the box, however narrow it is.
  static func cells(of channel: Channel, precision: Int? = nil, _ audience: Audience) -> [GeohashCell]? {
    let view: View
    switch channel {
    case .area(let cell): return [cell]
    case .nearby(let place, let meters): view = .circle(place, radiusMeters: meters)
    case .box(let box): view = .box(box)
    case .trip, .driver, .fence, .counts, .countsBlock, .fleet, .trips, .raw, .stats: return nil
    }
    if let precision { return view.cells(precision, atMost: HubLimits.cellsPerView) }
    let precisions = precisions(audience)
    for precision in precisions.reversed() {
      let limit = precision == precisions.lowerBound ? HubLimits.cellsPerView : usualCells
      guard let cells = view.cells(precision, atMost: limit) else { continue }
      return audience == .ops ? narrowed(cells, precision, view, precisions) : cells
    }
    return nil
  }

  // MARK: Counts

  /// The blocks whose cells are counted for a view; nil where there are too many. Without a `precision` the cells are
  /// the smallest of which at most 256 touch the box, or have three characters.
  static func blocks(of channel: Channel, precision: Int?) -> [GeohashCell]? {
    if case .countsBlock(let block) = channel { return [block] }
    guard case .counts(let box) = channel else { return nil }
    let view = View.box(box)
    func blocks(_ precision: Int) -> [GeohashCell]? {
      view.cells(precision - CountsUpdate.depth, atMost: HubLimits.blocksPerView)
    }
    if let precision { return blocks(precision) }
    let precisions = precisions(.ops)
    guard let cells = precisions.reversed().lazy.compactMap({ view.cells($0, atMost: HubLimits.cellsPerView) }).first
    else {
      return blocks(precisions.lowerBound)
    }
    return narrowed(cells, cells[0].precision, view, precisions).flatMap { blocks($0[0].precision) }
  }

  /// Smaller cells, where these are too large for the view.
  private static func narrowed(
    _ chosen: [GeohashCell], _ precision: Int, _ view: View, _ precisions: ClosedRange<Int>
  ) -> [GeohashCell]? {
    var (cells, precision) = (chosen, precision)
    let largest = 4 * view.squareMeters
    while precision < precisions.upperBound, cells.contains(where: { $0.box.squareMeters > largest }) {
      precision += 1
      guard let smaller = view.cells(precision, atMost: HubLimits.cellsPerView) else { return nil }
      cells = smaller
    }
    return cells
  }
}
