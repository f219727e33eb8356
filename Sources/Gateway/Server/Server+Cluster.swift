// The cluster's thread: one more outlet of the hub, behind those of its loops. A single hub has none.
import HubCluster
import HubCore
import HubRuntime
import HubSystem
import HubTokens
import HubTransport
import HubWebhooks

extension ServerConfiguration {
  /// The hub's outlets: its loops, one for all other hubs, and one for streams that have positions.
  var outlets: Int { loops + (cluster == nil ? 0 : 1) + (hasPositionStreams ? 1 : 0) }

  /// This hub's name in the cluster; nil for a single hub.
  var hubName: String? { cluster?.identity.name }

  var hasPositionStreams: Bool { journal != nil && deliveries.streams.contains(where: \.hasPositions) }
}

extension Server {
  /// The cluster's loop, whose outlet is appended; nil for a single hub.
  static func makeClusterLoop(
    _ configuration: ServerConfiguration, _ outlets: inout [Outlet], _ threads: inout Threads
  ) throws(SystemError) -> LoopBox? {
    guard configuration.cluster != nil else { return nil }
    let loop = try EventLoop(limits: ClusterLoop.loopLimits)
    threads.wakers.append(loop.waker)
    let waker = loop.waker
    outlets.append(
      Outlet(capacity: configuration.limits.mailboxMessages, waker: waker) { waker.wake() })
    return LoopBox(loop, adminListener: nil)
  }

  /// Starts the cluster's thread.
  static func startCluster(
    _ box: LoopBox, _ hub: SharedHub, _ configuration: ServerConfiguration, _ shared: SharedState
  ) throws(SystemError) -> Joinable {
    guard var cluster = configuration.cluster else { preconditionFailure("there is a loop for it") }
    if let signer = configuration.tokenSigner {
      cluster.identity.tokenKey = TokenKeyProof(signer)
    }
    let (outlet, seed) = (configuration.loops, UInt64.random(in: .min ... .max))
    let thread = try startThread(name: "cluster") { [cluster] in
      let loop = ClusterLoop(
        box.loop, HubPort(hub, loop: outlet), outlet: UInt32(outlet), cluster, lifecycle: shared.lifecycle,
        log: shared.log, seed: seed, openSessions: { shared.admissions.openSessions(of: $0) },
        show: { counters in shared.metrics.cluster.withLock { $0 = counters } })
      withExtendedLifetime(loop) { loop.run() }
      hub.finish(outlet, now: now())
    }
    return Joinable(thread)
  }
}

extension TokenKeyProof {
  /// A key that cannot sign counts as none: it has signed nothing that others must accept.
  fileprivate init(_ key: SigningKey) {
    do throws(KeyError) {
      self.init(signature: try key.sign(TokenKeyProof.words)) { key.verifies($0, of: TokenKeyProof.words[...]) }
    } catch {
      self.init()
    }
  }
}
