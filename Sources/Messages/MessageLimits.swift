// All limits of messages, with what happens at each.

/// What a reader accepts at most. RFC 8259 §9 lets a parser set limits on size, depth and range.
enum MessageLimits {
  /// Bytes of one message; beyond: `too_large`. The transport refuses such frames earlier (protocol/README.md,
  /// "Envelope").
  static let bytes = 256 * 1024
  /// Bytes of one message from the hub to a client: 1,000 drivers with a type and 8 tags take 1 MB.
  static let serverBytes = 4 * bytes
  /// Arrays and objects within one another; beyond: `too_large`. It bounds the parser's recursion.
  static let depth = 32
  /// Members of one object; beyond: `too_large`. Duplicate names are searched among so many (NameSorter).
  static let members = 128
  /// Members of one object of the hub's messages: a pong has the ping's members and three of its own.
  static let serverMembers = members + 8
  /// Values and member names of one message; beyond: `too_large`. A batch of 500 fixes in the nested form with all
  /// members has 22,000. It bounds the tape: 24 bytes a token.
  static let tokens = 65_000
  /// Values and member names of one message from the hub.
  static let serverTokens = tokens + 100
  /// Bytes of a `location_update` that `PlainUpdate` reads; `JSONTape` parses longer ones. All members at their longest
  /// are under 1 KiB.
  static let plainBytes = 4096
  /// Bytes of `epoch` (protocol/subscriptions.md, "Resuming").
  static let epochBytes = 32

  /// Channel numbers that a client's reader of binary messages knows; beyond: `too_large`, and the message is ignored.
  /// A session has far fewer subscriptions.
  static let channelHandles = 65_536

  // Bytes that writers reserve at once for messages, and parts of messages, of bounded size.

  /// Bytes of a timestamp in its longest format, with quotation marks.
  static let timestampBytes = 26
  /// Bytes of a channel's name: a word of at most 7, four numbers of at most 32 bytes and three commas.
  static let channelNameBytes = 7 + 4 * 32 + 3
  /// Bytes of a driver_location with its envelope: under 365 of names and punctuation, the channel's name, two ids of
  /// 64, six numbers of at most 32, two of 20, and two timestamps.
  static let positionBytes = 365 + channelNameBytes + 2 * 64 + 6 * 32 + 2 * 20 + 2 * timestampBytes
  /// Bytes of one driver in an area_update: under 140 of names and punctuation, an id, four numbers and a timestamp.
  static let areaDriverBytes = 140 + 64 + 4 * 32 + timestampBytes
  /// Bytes of its further members for ops, without its vehicle type: under 60 of names, an id and a number.
  static let areaDetailBytes = 60 + 64 + 32
  /// Bytes of an eta_update with its envelope: under 250 of names, words and punctuation, the channel's name, an id of
  /// 64, two numbers of at most 32, two of 20, and two timestamps.
  static let etaBytes = 250 + channelNameBytes + 64 + 2 * 32 + 2 * 20 + 2 * timestampBytes

  // Reservations for binary messages (protocol/binary.md).

  /// Bytes of an id: its length and 64.
  static let binaryIDBytes = 1 + 64
  /// Bytes of a driver_location: its flags, the channel's number and the age of at most 5 and 10, two ids, the time,
  /// the lag, a place, a heading, accuracy, speed and sequence of at most 10, and more flags.
  static let binaryPositionBytes = 1 + 5 + 2 * binaryIDBytes + 4 + 10 + 10 + 8 + 2 + 3 * 10 + 1
  /// Bytes of an eta_update: type, channel, flags, an id, the time, and four numbers of at most 10.
  static let binaryETABytes = 1 + 5 + 1 + binaryIDBytes + 4 + 4 * 10
  /// Bytes of one driver in an area_update: flags, an id, a heading and four numbers of at most 10.
  static let binaryAreaDriverBytes = 1 + binaryIDBytes + 2 + 4 * 10
  /// Bytes of its further members for ops: flags, a number of at most 10, an id and a vehicle type.
  static let binaryAreaDetailBytes = 1 + 10 + 2 * binaryIDBytes
  /// Bytes of a location_update: its flags, the message's id, a trip's, a place, a time, and seven numbers of at most
  /// 10.
  static let binaryUpdateBytes = 2 + 2 * (2 + 64) + 8 + 6 + 7 * 10
}

// Fixed by the protocol for a message's members; no operator changes it.

extension DriverLocation {
  /// Metres per second of a published position, in any message; clients refuse a message with more. No vehicle is that
  /// fast: a hub ignores speeds over 90 m/s.
  public static let maximumSpeed = 1000.0
}

extension LocationBatch {
  /// Fixes of one batch; beyond: `too_large`.
  public static let maximumCount = 500
}

extension DriverStatusReport {
  public static let maximumTags = 8
}

extension Refresh {
  /// Bytes of a token: as many as fit the head of a request.
  public static let maximumBytes = 8 * 1024
}

extension Ping {
  /// Bytes of `members`, which the hub has to write and compress again.
  public static let maximumBytes = 4096
}

extension Route {
  /// Places of one route. Beyond: `too_large`.
  public static let maximumPoints = 5000
}

extension Fence {
  /// Metres of a circle's radius. Past it: `bad_message`.
  public static let maximumRadiusMeters = 1_000_000.0
  /// Metres of a corridor's width. Past it: `bad_message`.
  public static let maximumWidthMeters = 20_000.0
  /// Metres between two drivers. Past it: `bad_message`.
  public static let maximumRoamingMeters = 1_000.0
  /// Positions of a corridor, as many as of a polygon. Past it: `too_large`.
  public static let maximumPlaces = DriverSearch.maximumPositions
}

extension DriverSearch {
  /// The default and the limit of hits.
  public static let defaultLimit = 100
  public static let maximumLimit = 1000
  /// Metres. A larger radius is a mistaken unit, or means the nearest, which need no radius.
  public static let maximumRadiusMeters = 1_000_000.0
  /// Metres: half the Earth's circumference, the reach of a search without a radius.
  public static let everywhereMeters = 20_038_000.0
  /// Positions of all rings of a polygon.
  public static let maximumPositions = 1000
}

extension NotificationPost {
  /// Bytes of each; beyond: `too_large`.
  public static let maximumTitleBytes = 256
  public static let maximumBodyBytes = 4096
  public static let maximumDataBytes = 4096
  /// Nested objects and arrays in `data`; beyond: `too_large`.
  public static let maximumDataDepth = 8
}

extension AreaUpdate {
  /// Drivers of one update, full or not. More are split into several updates, so that each fits an outbox.
  public static let maximumDrivers = 1000
  /// An estimate of a driver's bytes with all members for ops, in JSON: more than most have.
  public static let usualDriverBytes = 256
}

extension CountsUpdate {
  /// An estimate of a cell's bytes in JSON: more than most have.
  public static let usualCellBytes = 96
}

extension OfferCriteria {
  /// Metres round the pickup. Past it: `bad_message`.
  public static let defaultRadiusMeters = 10_000.0
  public static let maximumRadiusMeters = 100_000.0
  /// Drivers asked at a time. Past it: `bad_message`.
  public static let defaultAtOnce = 1
  public static let maximumAtOnce = 16
  /// Seconds that a driver has to answer. Outside: `bad_message`.
  public static let defaultSeconds = 15
  public static let secondsRange = 5...120
  /// Drivers asked in all, for one trip. Past it: `bad_message`.
  public static let defaultLimit = 20
  public static let maximumLimit = 64
}
