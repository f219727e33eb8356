// Which cells an area channel stands for: one, or those of a circle or box, in the size that fits it or is asked for.
import HubGeo
import HubMessages

enum AreaCovering {
  /// Cells that a view is covered with at most, unless no smaller ones are few enough: then it is covered with up to
  /// `HubLimits.cellsPerView` of the largest.
  private static let usualCells = 16

  /// The cells that a session asks for, and as whom it sees them; nil where there are too many. `isPeer`: another hub
  /// asks, for all drivers of this one.
  static func watched(by role: Role, _ request: Subscribe, isPeer: Bool) -> (AreaAudience, [GeohashCell])? {
    let (audience, cells): (AreaAudience, [GeohashCell]?) =
      if isPeer {
        (.peers, self.cells(of: request.channel, .ops))
      } else if request.channel.isOfCounts {
        (.counts, blocks(of: request.channel, precision: request.precision))
      } else if role == .ops {
        (.ops, self.cells(of: request.channel, precision: request.precision, .ops))
      } else {
        (.everybody, self.cells(of: request.channel, .everybody))
      }
    return cells.map { (audience, $0) }
  }

  /// Characters of an area's geohash that an audience may ask for.
  static func precisions(_ audience: Audience) -> ClosedRange<Int> {
    switch audience {
    case .everybody: 5...8
    case .ops: Channel.areaPrecisions.lowerBound...Channel.areaPrecisions.upperBound
    }
  }

  /// What a view shows.
  private enum View {
    case circle(Coordinate, radiusMeters: Double)
    case box(BoundingBox)

    /// Nil where there are more than so many.
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

  /// What who asked is told where there are too many.
  static func refusal(of request: Subscribe) -> String {
    let (mostCells, mostBlocks) = (HubLimits.cellsPerView, HubLimits.blocksPerView)
    if case .counts = request.channel {
      return "that is more than \(mostBlocks) blocks, or a box too narrow for its cells: take another box or precision"
    }
    if let precision = request.precision {
      return "that is more than \(mostCells) cells of \(precision) characters: take a smaller view, or fewer characters"
    }
    if case .box = request.channel {
      return
        "it takes more than \(mostCells) cells that are no larger than four times the box: take another box, or say "
        + "which precision"
    }
    return "so near to a pole the circle touches more than \(mostCells) cells: take a smaller radius"
  }

  /// The cells; nil where there are too many, or the channel is no area. `precision`: of all cells, where that is asked
  /// for.
  ///
  /// A circle gets the smallest cells of which 16 or fewer touch it: of 1 km some 11 of 1.2 by 0.6 km, of 5 km some 9
  /// of 5 by 5 km. That keeps what is sent beyond the circle within some two and a half times its area. A box gets the
  /// same; and what ops watch, however long and narrow, gets no cells larger than four times its own area.
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
  /// the smallest of which 256 or fewer touch the box, and of three characters where no smaller ones are so few.
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

  /// Smaller cells, where these are too large for what is watched.
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
