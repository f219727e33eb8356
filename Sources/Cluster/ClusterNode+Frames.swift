// What comes from the bus and from the hub, by its kind.
public import HubBackplane
public import HubBytes
public import HubCore
import HubMessages

extension ClusterNode {
  // MARK: The bus

  public mutating func take(_ event: BusEvent) {
    switch event {
    case .up(let node): notices.append(.busUp(node))
    case .down(let node, let reason): notices.append(.busDown(node, reason: reason))
    case .frame(let lane, let bytes):
      counters.framesIn += 1
      counters.bytesIn += UInt64(bytes.count)
      do throws(ClusterFrameError) { try receive(bytes, lane) } catch { refuseFrame("\(error)") }
    }
  }

  private mutating func refuseFrame(_ reason: String) {
    counters.framesRefused += 1
    guard now.uptime >= refusalNoticeAt else { return }
    refusalNoticeAt = now.uptime + limits.refusalNoticeTime
    notices.append(.frameRefused(reason: reason))
  }

  private mutating func receive(_ bytes: [UInt8], _ lane: Lane) throws(ClusterFrameError) {
    guard bytes.count <= limits.largestFrame else { throw .short }
    var (head, reader) = try Frame.read(bytes, identity.keys)
    guard head.lane == lane else { throw .lane }
    guard phase == .member, head.to == identity.name, head.from != identity.name else { throw .name }
    // Of a process before this one, or before the sender's: whoever has recorded it can send it again.
    guard head.toIncarnation == incarnation, let index = peer(head.from) else {
      counters.framesRefused += 1
      return
    }
    guard head.fromIncarnation >= peers[index].incarnation else {
      counters.framesRefused += 1
      return
    }
    if head.fromIncarnation > peers[index].incarnation { begin(index, head.fromIncarnation) }
    switch peers[index].note(head.number, lane) {
    case .repeated:
      counters.framesRefused += 1
      return
    case .next: break
    case .gap(let missed): noteGap(index, lane, missed)
    }
    (peers[index].heard, peers[index].clock) = (now.uptime, head.clock)
    if !peers[index].isMember {  // it knows this hub before this one has read of it
      peers[index].isMember = true
      tellCredentials(index)
      askForAll(index)
      notices.append(.peerJoined(head.from, incarnation: head.fromIncarnation))
    }
    while !reader.isAtEnd { try take(try reader.record(), from: index) }
  }

  /// Something of a peer did not come: what is followed there is asked for anew; and what it follows here, too, where
  /// its questions may be among what is missing.
  private mutating func noteGap(_ index: Int, _ lane: Lane, _ missed: UInt64) {
    counters.framesMissed &+= missed
    notices.append(.gap(peers[index].name, missed: missed))
    peers[index].wantsRestart = true
    switch lane {
    case .state: break
    case .control:
      releaseInterest(of: index)
      peers[index].append(.lost, limits)
      tellCredentials(index)  // its own `lost` may be what is missing
    }
  }

  private mutating func take(_ record: FrameRecord, from index: Int) throws(ClusterFrameError) {
    var reader = ClusterFrameReader(record.body)
    switch record.kind {
    case .alive:
      if reader.isAtEnd { return }
      let missed = peers[index].note(announced: try reader.varint(), .state)
      if missed > 0 { noteGap(index, .state, missed) }
    case .subscribe:
      var ahead = reader
      let token = try ahead.varint()
      guard token > 0 else { throw .message }
      reader = ahead
      try take(ask: token, &reader, from: index)
    case .resume: try take(ask: 0, &reader, from: index)
    case .released: unfollow(try reader.channel(), by: index)
    case .restart:
      releaseInterest(of: index)
      repeatEnded(to: index)
    case .lost:
      peers[index].wantsRestart = true
      tellCredentials(index)
    case .subscribed: try take(subscribed: &reader, from: index)
    case .refused: try take(refused: &reader, from: index)
    case .notHere: try take(notHere: &reader, from: index)
    case .publication:
      var run = ClusterFrameReader(record.body)
      try take(publication: &run, from: index)
    case .ended: try take(ended: &reader, from: index)
    case .shareEnded:
      let (channel, id) = (try reader.channel(), try reader.identifier())
      inputs.append(.cluster(.shareEnded(channel, of: id)))
    case .claimed:
      let (channel, id) = (try reader.channel(), try reader.identifier())
      inputs.append(.cluster(.claimed(channel, by: id)))
    case .moved: takeMoved(try reader.channel(), from: index, isNews: true)
    case .replaced:
      let (generation, id) = (try reader.varint(), try reader.identifier())
      take(replaced: id, generation)
    case .tripRequest: try take(tripRequest: &reader, from: index)
    case .replied: try take(replied: &reader, from: index)
    case .question: try take(question: &reader, from: index)
    case .found: try take(found: &reader, from: index)
    case .list: try take(list: &reader, from: index)
    case .listed: try take(listed: &reader, from: index)
    case .figuresWanted: takeFiguresWanted(isHistory: try reader.byte() != 0, from: index)
    case .figures: try take(figures: &reader, from: index)
    case .revoked: try take(revoked: &reader)
    case .familyQuestion: try take(familyQuestion: &reader, from: index)
    case .families: try take(families: &reader, from: index)
    case .tokenKey: take(tokenKey: try reader.run(), of: index)
    case .watch: try take(watch: &reader, from: index)
    case .unwatch: try take(unwatch: &reader, from: index)
    case .area: try take(area: &reader, from: index)
    case .begun:
      let channel = try reader.channel()
      inputs.append(.cluster(.begunElsewhere(channel)))
      if case .driver(let id) = channel { inputs.append(.cluster(.begunElsewhere(.raw(id)))) }
    }
  }

  // MARK: The hub

  /// What the hub has for other hubs.
  public mutating func take(_ outputs: borrowing HubOutputs) {
    var cursor = HubOutputs.Cursor()
    while let step = outputs.next(&cursor) {
      switch step {
      case .common(let index): publish(outputs[common: index].delivery)
      case .rare(let index): take(outputs[rare: index])
      }
    }
  }

  private mutating func take(_ output: HubOutput) {
    switch output {
    case .delivery(let delivery): publish(delivery)
    case .subscribed(let session, let handle, let answer, let missed, let isParty):
      answered(session, handle, answer, missed, isParty: isParty)
    case .watching(let session, _, let handles): watches(session, handles)
    case .areaSnapshot(let session, let handle, let parts): tell(session, handle, whole: parts)
    case .areaUpdate(let handle, let publication): tell(handle, publication)
    case .areaTickEnded: endAreaTick()
    case .subscriptionRefused(let session, let error): refused(session, error)
    case .channelEnded(let handle, let channel, let reason): end(handle, channel, .ended, reason)
    case .shareEnded(let handle, let channel, let id): endRight(handle, channel, .shareEnded, id)
    case .channelClaimed(let handle, let channel, let id): endRight(handle, channel, .claimed, id)
    case .cluster(let output): take(output)
    case .reply(let session, let reply): answered(session, reply)
    case .queryResult(let session, .drivers(let list)?, _) where list.places != nil:
      listed(HubPage(list), by: session)
    case .queryResult(let session, let result, _): found(result, by: session)
    case .trips(let session, .trip(let report, let isNew), _): shown(session, report, isNew: isNew)
    case .trips(let session, .list(let page), _): listed(HubPage(page), by: session)
    case .trips(let session, .refused(let error), _): answered(session, .error(error))
    case .revoked(let change): take(change)
    case .credentials(let session, let answer):
      if session.generation == 0 { take(answer) } else { found(answer, by: session) }
    // Only who has a session gets these, and this outlet has none.
    case .viewEnded, .unsubscribed, .named, .admitted, .conflict, .full, .replaced, .trips, .notified, .fences,
      .channelRestarted:
      break
    }
  }

  private mutating func take(_ output: ClusterOutput) {
    switch output {
    case .subscribe(let input): subscribe(input)
    case .notHere(let session): notHere(session)
    case .tripRequest(let request): forward(request)
    case .ask(let question): ask(question)
    case .credentials(let request): ask(request)
    case .owned(let channel, let takes): own(channel, takes: takes)
    case .released(let channel): disown(channel)
    case .follow(let channel, let point): follow(channel, from: point)
    case .followed(let channel, let point):
      if following.follows[channel]?.hasSessions != true { follow(channel, from: point) }
    case .unfollowed(let channel): unfollow(channel)
    case .moved(let handle, let channel): end(handle, channel, .moved, nil)
    case .watched(let cell): watch(cell)
    case .unwatched(let cell): unwatch(cell)
    case .second(let second, let watched): take(second, watched)
    }
  }
}
