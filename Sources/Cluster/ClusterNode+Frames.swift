// Input from the bus and from the hub, by its kind.
public import HubBackplane
public import HubBytes
public import HubCore
import HubMessages

extension ClusterNode {
  // MARK: The bus

  /// Handles an event of the bus. A frame that is broken, forged or of a foreign version is counted and dropped.
  public mutating func take(bus event: BusEvent) {
    switch event {
    case .up(let node): context.notices.append(.busUp(node))
    case .down(let node, let reason): context.notices.append(.busDown(node, reason: reason))
    case .frame(let lane, let bytes):
      context.counters.framesIn += 1
      context.counters.bytesIn += UInt64(bytes.count)
      do throws(ClusterFrameError) { try receive(bytes, lane) } catch { refuse(bytes, lane, error) }
    }
  }

  private mutating func refuse(_ bytes: [UInt8], _ lane: Lane, _ error: ClusterFrameError) {
    context.counters.framesRefusedByKind[Int(error.kind.rawValue)] += 1
    let sender = Frame.claimedSender(bytes)
    context.note(
      .frameRefused(error, from: sender, lane),
      seldom: .frameRefused(error.kind, lane, sender.flatMap(context.knownPeer)))
  }

  private mutating func receive(_ bytes: [UInt8], _ lane: Lane) throws(ClusterFrameError) {
    guard bytes.count <= context.limits.largestFrame else { throw .short }
    var (head, reader) = try Frame.read(bytes, context.identity.keys)
    guard head.lane == lane else { throw .lane }
    guard context.phase == .member, head.to == context.identity.name, head.from != context.identity.name else {
      throw .name
    }
    // One for or from an earlier process may be a recorded frame that is sent again. One for a later process shows that
    // this has, or had, this hub's name: peers ignore what is older.
    if head.toIncarnation > context.incarnation { supersede(by: head.toIncarnation) }
    guard head.toIncarnation == context.incarnation else { throw .incarnation }
    guard let index = context.peer(head.from) else { throw .peers }
    guard head.fromIncarnation >= context.peers[index].incarnation else { throw .incarnation }
    let peer = context.peers[index]
    if head.fromIncarnation > peer.incarnation { begin(index, head.fromIncarnation) }
    switch peer.note(head.number, lane) {
    case .repeated: throw .number
    case .next: break
    case .gap(let missed): noteGap(index, lane, missed)
    }
    (peer.heard, peer.clock) = (context.now.uptime, head.clock)
    join(index)  // it may know this hub before this one has read of it in the ledger
    var unreadable: ClusterFrameError?
    var hasHole = false
    defer { context.handOverPositions() }
    while !reader.isAtEnd {
      do throws(ClusterFrameError) {
        let record = try reader.record()
        do throws(ClusterFrameError) { try receive(record: record, from: index) } catch {
          // A record of one client's question or answer that cannot be read must not interrupt the link for the others.
          if !ClusterRecordKind.ofClients.contains(record.kind) { hasHole = true }
          unreadable = error
        }
      } catch {
        // Of a kind from a later version: this version does not need it.
        if case .record = error {
          unreadable = error
          continue
        }
        // The rest of the frame is lost with it.
        noteGap(index, lane, 0)
        throw error
      }
    }
    if hasHole { noteGap(index, lane, 0) }
    if let unreadable { throw unreadable }
  }

  /// Writes what this hub has, and waits for, to the ledger again: it may have lost its memory.
  mutating func writeBack() {
    claims.queueAll()
    following.beginLedger()
  }

  /// A later process has this hub's name.
  mutating func supersede(by other: UInt64) {
    guard context.phase == .member else { return }
    context.phase = .superseded
    context.notices.append(.superseded(by: other))
  }

  /// Some of a peer's frames did not come: requests again what is followed there; and restarts what it follows here,
  /// where its questions may be missing.
  private mutating func noteGap(_ index: Int, _ lane: Lane, _ missed: UInt64) {
    context.counters.framesMissed &+= missed
    context.notices.append(.gap(context.peers[index].name, missed: missed))
    context.peers[index].wantsRestart = true
    switch lane {
    case .state: break
    case .control:
      askLedger()
      releaseInterest(of: index)
      context.peers[index].append(.lost)
      revoking.announce(to: index)  // its own `lost` may be what is missing
    }
  }

  /// A hub may have begun or claimed something without this one's noticing: the ledger is asked.
  private mutating func askLedger() {
    claims.checksHomes = true
    following.checksWaiting = true
  }

  private mutating func receive(record: FrameRecord, from index: Int) throws(ClusterFrameError) {
    let peer = context.peers[index]
    var reader = ClusterFrameReader(record.body)
    if record.kind != .publication { context.handOverPositions() }
    switch record.kind {
    case .alive:
      let missed = try reader.isAtEnd ? 0 : peer.note(announced: reader.varint(), .state)
      if missed > 0 { noteGap(index, .state, missed) }
    case .subscribe: try interest.receive(subscribe: &reader, from: index)
    case .resume: try interest.receive(resume: &reader, from: index)
    case .released: interest.unfollow(try reader.channel(), by: index)
    case .restart:
      // What it sent before it had heard of this process is lost: it may have taken drivers that came here before.
      if peer.hasRestarted || !peer.hasEverRestarted && claims.hasSeized { claims.checksHomes = true }
      (peer.hasRestarted, peer.hasEverRestarted) = (true, true)
      following.checksWaiting = true
      releaseInterest(of: index)
      context.repeatEnded(to: index)
    case .lost:
      askLedger()
      peer.wantsRestart = true
      revoking.announce(to: index)
    case .subscribed: receive(ownerAnswer: try OwnerAnswer(&reader, from: peer), from: index)
    case .refused: try following.receive(refused: &reader, from: index)
    case .notHere: try following.receive(notHere: &reader, from: index)
    case .publication: try receive(publication: &reader, from: index)
    case .ended: try following.receive(ended: &reader, from: index)
    case .shareEnded:
      let (channel, holder) = (try reader.channel(), try reader.identifier())
      following.forget(holder: holder, of: channel)
      notify(.shareEnded(channel, of: holder))
    case .claimed: try notify(.claimed(reader.channel(), by: reader.identifier()))
    case .moved: following.receive(moved: try reader.channel(), from: index, isNews: true)
    case .replaced: try claims.receive(replaced: &reader)
    case .tripRequest: try forwarding.receive(tripRequest: &reader, from: index)
    case .replied: try forwarding.receive(replied: &reader, from: index)
    case .answered: try forwarding.receive(answered: &reader, from: index)
    case .question: try asking.receive(question: &reader, from: index)
    case .found: try asking.receive(found: &reader, from: index)
    case .list: try asking.receive(list: &reader, from: index)
    case .listed: try asking.receive(listed: &reader, from: index)
    case .figuresWanted: try feeds.receive(figuresWanted: &reader, from: index)
    case .figures: try feeds.receive(figures: &reader, from: index)
    case .revoked: try revoking.receive(revoked: &reader)
    case .familyQuestion: try familyQuestions.receive(familyQuestion: &reader, from: index)
    case .families: try familyQuestions.receive(families: &reader, from: index)
    case .tokenKey: revoking.receive(tokenKey: try reader.run(), of: index)
    case .watch: try watching.receive(watch: &reader, from: index)
    case .unwatch: try watching.receive(unwatch: &reader, from: index)
    case .area: try watching.receive(area: &reader, from: index)
    case .unheard: context.unheard.append((index, try reader.varint()))
    case .begun:
      let channel = try reader.channel()
      receive(begun: channel, from: index)
      guard case .driver(let id) = channel else { return }
      receive(begun: .raw(id), from: index)
      claims.check(channel)
    }
  }

  /// A peer has become the owner of a channel's trip or driver.
  private mutating func receive(begun channel: Channel, from index: Int) {
    notify(.begunElsewhere(channel))
    following.receive(begun: channel, from: index)
  }

  private func notify(_ input: ClusterInput) { context.inputs.append(.cluster(input)) }

  /// The owner of a channel has answered.
  private mutating func receive(ownerAnswer answer: OwnerAnswer, from index: Int) {
    switch answer.answer.channel {
    case .fleet: feeds.beginFleet(of: index)
    case .trips:
      switch trips.receive(ownerAnswer: answer, from: index) {
      case .own: break
      case .counted: following.receive(ownerAnswer: answer, from: index)
      case .unwanted: following.receive(moved: .trips, from: index, isNews: false)
      }
    case .trip, .driver, .raw, .fence, .area, .nearby, .box, .counts, .countsBlock, .stats:
      following.receive(ownerAnswer: answer, from: index)
    }
  }

  private mutating func receive(publication reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError)
  {
    let message: ServerMessage?
    do throws(ClusterFrameError) {
      if let position = try reader.position(&context.peers[index].reader) {
        return receive(position: position, from: index)
      }
      message = try reader.message(&context.peers[index].reader)
    } catch {
      return  // of a channel that is not followed any more: its last states may come after its release
    }
    guard case .publication(let publication)? = message else { return }
    switch publication.channel {
    case .fleet: break  // it has positions only
    case .trips where context.tripCounter == .here: trips.receive(event: publication, from: context.peers[index])
    case .trip, .driver, .raw, .fence, .area, .nearby, .box, .counts, .countsBlock, .trips, .stats:
      following.receive(publication: publication, from: index)
    }
  }

  private mutating func receive(position: PublishedPosition, from index: Int) {
    if position.channel == .fleet {
      feeds.relayFleet(position, from: index)
    } else {
      following.receive(position: position, from: index)
    }
  }

  // MARK: The hub

  /// What the hub has for other hubs.
  public mutating func take(outputs: borrowing HubOutputs) {
    var cursor = HubOutputs.Cursor()
    while let step = outputs.next(&cursor) {
      switch step {
      case .common(let index): publish(outputs[common: index])
      case .rare(let index): handle(output: outputs[rare: index])
      }
    }
  }

  private mutating func handle(output: HubOutput) {
    switch output {
    case .delivery(let delivery):
      if let position = PositionDelivery(delivery) { publish(position) } else { interest.publish(delivery) }
    case .subscribed(let session, let handle, let answer, let missed, let isParty):
      interest.answered(session, handle, answer, missed, isParty: isParty)
    case .watching(let session, _, let handles): watching.watches(session, handles)
    case .areaSnapshot(let session, let handle, let parts): watching.send(parts, of: handle, to: session)
    case .areaUpdate(let handle, let publication): watching.send(publication, of: handle)
    case .areaTickEnded: watching.endTick()
    case .subscriptionRefused(let session, let error): refused(session, error)
    case .channelEnded(let handle, let channel, let reason): interest.end(handle, channel, .ended, reason)
    case .shareEnded(let handle, let channel, let id): interest.endRight(handle, channel, .shareEnded, id)
    case .channelClaimed(let handle, let channel, let id): interest.endRight(handle, channel, .claimed, id)
    case .cluster(let output): handle(cluster: output)
    case .reply(let session, let reply): answered(session, reply)
    case .queryResult(let session, .drivers(let list)?, _) where list.indices != nil:
      asking.listed(HubPage(list), by: session)
    case .queryResult(let session, let result, _): asking.found(result, by: session)
    case .trips(let session, .trip(let report, let isNew), _): shown(session, report, isNew: isNew)
    case .trips(let session, .list(let page), _): asking.listed(HubPage(page), by: session)
    case .trips(let session, .refused(let error), _): answered(session, .error(error))
    case .trips(let session, .offers(let report, let isNew), _): forwarding.shown(session, report, isNew: isNew)
    case .trips(let session, .offersStopped, _): forwarding.shown(session, nil)
    case .trips(let session, let answer, _): forwarding.shown(session, shares: answer)
    case .notified(let session, .published(_, let sequence, let isNew)):
      forwarding.notified(session, sequence, isNew: isNew)
    case .notified(let session, .refused(let error)): answered(session, .error(error))
    case .revoked(let change): revoking.announce(change)
    case .credentials(let session, let answer):
      if session.generation == 0 { revoking.send(page: answer) } else { familyQuestions.found(answer, by: session) }
    // Only sessions get these, and this outlet has none.
    case .viewEnded, .unsubscribed, .named, .admitted, .conflict, .full, .replaced, .fences,
      .channelRestarted:
      break
    }
  }

  private mutating func publish(_ delivery: PositionDelivery) {
    if delivery.channel == interest.fleet { feeds.keep(delivery) } else { interest.publish(delivery) }
  }

  private mutating func refused(_ session: SessionRef, _ error: ErrorReply) {
    guard let (ask, isCurrent) = context.asker(session), isCurrent, let channel = ask.channel else { return }
    if case .area(let cell) = channel { return watching.refused(cell, by: ask.peer) }
    interest.refuse(ask.peer, ask.token, channel, error)
  }

  /// The hub has answered a request of a peer, or a question of a peer or its own.
  private mutating func answered(_ session: SessionRef, _ reply: Reply) {
    guard let (ask, isCurrent) = context.asker(session), isCurrent else { return }
    guard ask.channel == nil else { return forwarding.reply(ask.peer, ask.token, reply) }
    if case .error(let error) = reply { asking.reply(ask.peer, .refused(error), ask.token) }
  }

  /// The hub has shown a trip to its asker, or has begun or changed it over HTTP.
  private mutating func shown(_ session: SessionRef, _ report: TripReport, isNew: Bool) {
    guard let (ask, isCurrent) = context.asker(session), isCurrent else { return }
    guard ask.channel != nil else { return asking.reply(ask.peer, .result(.trip(report)), ask.token) }
    let result = ResultReply(replyTo: ClusterOutput.unsolicited, result: .trip(report))
    forwarding.reply(ask.peer, ask.token, .result(result), isNew: isNew)
  }

  /// Has the ledger forget that this hub owns a key, if it does.
  private func release(_ key: String, _ purpose: ClusterContext.Purpose = .nothing) {
    context.questions.append((.release(key: key, by: context.identity.name), purpose))
  }

  private mutating func handle(cluster output: ClusterOutput) {
    switch output {
    case .subscribe(let input) where input.request.channel == .stats: feeds.subscribe(input)
    case .subscribe(let input): following.subscribe(input)
    case .notHere(let session):
      // The ledger names this hub for what it does not have, as after a start without its journal.
      guard let channel = interest.notHere(session), !claims.has(channel), let key = channel.ledgerKey else { return }
      release(key, .disclaim(channel))
    case .tripRequest(let request): forwarding.forward(request)
    case .ask(let question): asking.ask(question)
    case .credentials(let request): familyQuestions.ask(request)
    case .owned(.trips, _, _): trips.begin()
    case .owned(let channel, let seizes, let arrival):
      following.begin(channel)
      claims.own(channel, seizes: seizes, arrival: arrival)
    case .released(let channel): claims.disown(channel)
    case .tripRefused(let trip): release("i:\(trip)")
    case .tokensRefused(let word): release("k:\(word)")
    case .waiting(let channel): following.wait(channel)
    case .follow(let channel, let point, let eventsOnly):
      following.follow(channel, from: point, eventsOnly: eventsOnly)
    case .followed(let channel): following.followed(channel)
    case .unfollowed(let channel): following.unfollow(channel)
    case .moved(let handle, let channel): interest.end(handle, channel, .moved, nil)
    case .watched(let cell): watching.watch(cell)
    case .unwatched(let cell): watching.unwatch(cell)
    case .second(let second, let watched): feeds.endSecond(second, watched, interest)
    }
  }
}
