// Notifications that back ends post, and their `data`.
import HubBytes

extension JSONTape {
  /// The members of `data` beside `driverId`, as JSON without the braces; nil where there are none.
  func notificationContent(_ payload: JSONMembers, _ bytes: Span<UInt8>) -> String? {
    guard let data = present(payload, .data) else { return nil }
    return members(of: data, but: [.driverId], bytes).map { String(decoding: $0, as: UTF8.self) }
  }

  /// The body of `POST /v1/notifications`.
  func notificationPost(_ bytes: Span<UInt8>) throws(ValidationError) -> NotificationPost {
    let body = try members(ofBody: "expected an object: a notification")
    let words: StaticString = "expected message or hazard"
    let kind: Notification.Kind = try required(keyword(body, .kind, bytes, words), .kind)
    guard kind == .message || kind == .hazard else { throw ValidationError(.kind, words) }
    let channel = try notifiedChannel(body, bytes)
    var post = NotificationPost(
      channel: channel, kind: kind, title: try text(body, .title, bytes, atMost: NotificationPost.maximumTitleBytes),
      body: try text(body, .body, bytes, atMost: NotificationPost.maximumBodyBytes))
    try readData(body, bytes, into: &post)
    post.messageID = try messageID(ofBody: body, bytes)
    return post
  }

  private func notifiedChannel(_ body: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> Channel {
    var fault = ValidationError(.unknownChannel, .channel, "expected trip:, driver: or fence:, and an id")
    do throws(ValidationError) {
      let channel = try required(channel(body, bytes), .channel)
      switch channel {
      case .trip, .driver, .fence: return channel
      case .area, .nearby, .box, .counts, .countsBlock, .fleet, .trips, .raw, .stats: break
      }
    } catch {
      if error.code != .unknownChannel { fault = error }
    }
    throw fault
  }

  private func text(
    _ body: JSONMembers, _ key: JSONKey, _ bytes: Span<UInt8>, atMost limit: Int
  ) throws(ValidationError) -> String {
    let text = try required(string(body, key, bytes), key)
    guard !text.isEmpty else { throw ValidationError(key, "expected a text that is not empty") }
    guard text.utf8.count <= limit else { throw ValidationError(.tooLarge, key, "is too long") }
    return text
  }

  /// `target` and `fenceId` have a meaning in the hub's own notifications.
  private func readData(_ body: JSONMembers, _ bytes: Span<UInt8>, into post: inout NotificationPost)
    throws(ValidationError)
  {
    guard let data = try object(body, .data) else { return }
    guard present(data, .target) == nil, present(data, .fenceId) == nil else {
      throw ValidationError(.data, "target and fenceId are for the hub's own notifications")
    }
    post.driverID = try identifier(data, .driverId, bytes)
    post.content = notificationContent(body, bytes)
    guard let content = post.content else { return }
    guard content.utf8.count <= NotificationPost.maximumDataBytes else {
      throw ValidationError(.tooLarge, .data, "expected up to 4,096 bytes")
    }
    guard depth(of: content) < NotificationPost.maximumDataDepth else {
      throw ValidationError(.tooLarge, .data, "expected up to 8 objects and arrays within one another")
    }
  }

  /// The depth of a text that is valid JSON.
  private func depth(of text: String) -> Int {
    var (depth, deepest) = (0, 0)
    var isInString = false
    var isEscaped = false
    for byte in text.utf8 {
      if isEscaped {
        isEscaped = false
        continue
      }
      switch byte {
      case UInt8(ascii: "\\"): isEscaped = true
      case UInt8(ascii: "\""): isInString.toggle()
      case UInt8(ascii: "["), UInt8(ascii: "{"): depth += isInString ? 0 : 1
      case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= isInString ? 0 : 1
      case _: break
      }
      deepest = max(deepest, depth)
    }
    return deepest
  }
}
