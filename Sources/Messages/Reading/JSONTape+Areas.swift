// Area updates, as a client reads them.
import HubBytes
import HubGeo

extension JSONTape {
  func areaUpdate(
    _ payload: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> AreaUpdate {
    var update = AreaUpdate(
      cell: try required(cell(at: present(payload, .cell), .cell, bytes), .cell),
      tick: try required(count(payload, .tick, bytes), .tick),
      isFull: try required(bool(payload, .full), .full), drivers: [])
    try forEachObject(payload, .drivers) { (driver) throws(ValidationError) in
      update.drivers.append(try areaDriver(driver, bytes, time))
      if let details = try details(driver, bytes) { update.details.append(details) }
    }
    try forEach(payload, .left) { (index) throws(ValidationError) in
      guard isText(index), let id = unsafe withText(index, bytes, { unsafe Identifier($0) }) else {
        throw ValidationError(.left, "expected ids")
      }
      update.left.append(id)
    }
    update.more = try count(payload, .more, bytes).map { Int(clamping: $0) }
    guard update.details.isEmpty || update.details.count == update.drivers.count else {
      throw ValidationError(.accuracy, "expected of all drivers or of none")
    }
    return update
  }

  /// The members for ops; nil where they are absent.
  private func details(
    _ driver: JSONMembers, _ bytes: Span<UInt8>
  ) throws(ValidationError) -> AreaUpdate.Details? {
    guard let accuracy = try nonNegative(driver, .accuracy) else { return nil }
    var details = AreaUpdate.Details(
      tripID: try identifier(driver, .tripId, bytes), accuracy: accuracy,
      confidence: try required(
        keyword(driver, .confidence, bytes, "expected high, medium or low"), .confidence),
      vehicleType: try inlineText(driver, .vehicleType, bytes))
    details.isOnline = try bool(driver, .online) ?? true
    return details
  }

  private func areaDriver(
    _ driver: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> AreaUpdate.Driver {
    AreaUpdate.Driver(
      driverID: try required(identifier(driver, .driverId, bytes), .driverId),
      coordinate: try coordinate(driver),
      heading: try heading(driver),
      speed: try speed(driver),
      status: try required(keyword(driver, .status, bytes, "expected the status of a driver"), .status),
      timestamp: try required(timestamp(driver, .timestamp, bytes, time), .timestamp),
      timeSource: try timeSource(driver, bytes))
  }

  /// The cells of a view; nil where there are none.
  func cells(
    _ payload: JSONMembers, _ key: JSONKey, _ bytes: Span<UInt8>
  ) throws(ValidationError) -> [GeohashCell]? {
    guard present(payload, key) != nil else { return nil }
    var cells: [GeohashCell] = []
    try forEach(payload, key) { (index) throws(ValidationError) in
      cells.append(try required(cell(at: index, key, bytes), key))
    }
    return cells
  }

  func cell(at index: Int?, _ key: JSONKey, _ bytes: Span<UInt8>) throws(ValidationError) -> GeohashCell? {
    guard let index else { return nil }
    guard isText(index), let cell = unsafe withText(index, bytes, { unsafe GeohashCell(utf8: $0) }) else {
      throw ValidationError(key, "expected a geohash of 1–12 characters")
    }
    return cell
  }
}
