// The metrics of a hub in a cluster.
import HubCluster

extension Metric {
  static let cluster: [Metric] = [
    ofCluster("cluster_bus_up", { $0.isBusUp ? 1 : 0 }, "1 while a node of the bus can be used."),
    ofCluster("cluster_ledger_up", { $0.isLedgerUp ? 1 : 0 }, "1 while the ledger can be asked."),
    ofCluster(
      "cluster_member", { $0.isMember ? 1 : 0 }, "1 while it is a member: not before, nor once its name is taken."),
    ofCluster(
      "cluster_engine_commands", { $0.engineCommands }, "Commands to bus and ledger that wait for a reply."),
    ofCluster("cluster_engine_bytes", { $0.engineBytes }, "Bytes waiting to be sent to bus and ledger."),
    ofCluster("cluster_ledger_refused_total", { $0.ledgerRefused }, "Questions that the ledger has refused."),
    ofCluster("cluster_ledger_memory_bytes", { $0.ledgerMemory }, "Memory that the ledger's node uses."),
    ofCluster(
      "cluster_ledger_memory_limit_bytes", { $0.ledgerMemoryLimit },
      "Memory that the ledger's node may use, its `maxmemory`; 0 for no limit."),
    ofCluster("cluster_peers", { $0.peers }, "Other hubs that are members."),
    ofCluster("cluster_silent_peers", { $0.silentPeers }, "Members not heard from for a second."),
    ofCluster("cluster_follows", { $0.follows }, "Channels of other hubs that sessions here follow or ask for."),
    ofCluster("cluster_followed", { $0.followed }, "Channels of this hub that others follow, counted for each hub."),
    ofCluster(
      "cluster_awaited", { $0.awaited }, "Channels of trips and drivers that no hub has and sessions here wait for."),
    ofCluster("cluster_questions", { $0.pending }, "Questions of sessions that another hub has not answered."),
    ofCluster(
      "cluster_unclaimed", { $0.unclaimed }, "Trips and drivers of this hub that the ledger does not have yet."),
    ofCluster(
      "cluster_waiting_bytes", { $0.waitingBytes },
      "Events, answers and areas for other hubs that the bus has not taken."),
    ofCluster("cluster_waiting_resumes", { $0.waitingResumes }, "Channels that other hubs are to be asked for again."),
    ofCluster("cluster_waiting_cells", { $0.waitingCells }, "Cells that other hubs are to be asked for again."),
    ofCluster("cluster_ended_rights", { $0.endedRights }, "Ends of rights that are resent to a hub that missed any."),
    ofCluster(
      "cluster_revocation_receivers", { $0.revocationReceivers }, "Hubs that all revocations are still to be sent to."),
    ofCluster("cluster_lag_milliseconds", { $0.lag }, "Time since the longest-silent member was last heard."),
    ofCluster("cluster_waiting_states", { $0.waitingStates }, "Positions and ETAs that the bus has not taken."),
    ofCluster("cluster_frames_out_total", { $0.framesOut }, "Frames sent to other hubs."),
    ofCluster("cluster_frames_in_total", { $0.framesIn }, "Frames received from the bus."),
    ofCluster("cluster_bytes_out_total", { $0.bytesOut }, "Bytes of frames sent."),
    ofCluster("cluster_bytes_in_total", { $0.bytesIn }, "Bytes of frames received."),
    ofCluster("cluster_frames_missed_total", { $0.framesMissed }, "Frames of other hubs that never arrived."),
    Metric(
      name: "cluster_frames_refused_total", label: "reason",
      help: "Frames that were refused, by reason: `mac` where no hub of this cluster has signed them."
    ) { reading in
      reading.cluster.map { counters in
        ClusterFrameError.Kind.allCases.map { ("", "\($0)", .count(counters.framesRefusedByKind[Int($0.rawValue)])) }
      }
    },
    ofCluster("cluster_states_out_total", { $0.statesOut }, "Positions and ETAs sent to other hubs."),
    ofCluster(
      "cluster_states_conflated_total", { $0.statesConflated },
      "Positions and ETAs for other hubs that a newer one replaced before they were sent."),
    ofCluster("cluster_relayed_total", { $0.relayed }, "Publications of other hubs for sessions of this one."),
    ofCluster("cluster_cells_asked", { $0.cellsAsked }, "Cells of the map that other hubs are asked for."),
    ofCluster("cluster_cells_watched", { $0.cellsWatched }, "Cells that others watch here, counted for each hub."),
    ofCluster("cluster_cells_refused_total", { $0.cellsRefused }, "Cells for which another hub found no room here."),
    ofCluster("cluster_area_drivers_out_total", { $0.areaDriversOut }, "Drivers in cells, sent to other hubs."),
    ofCluster("cluster_area_drivers_in_total", { $0.areaDriversIn }, "Drivers in cells, received from other hubs."),
    ofCluster(
      "cluster_forwarded_total", { $0.forwarded },
      "Moves and changes of trips, and questions about tokens made by a hub, that went to the hub that has them."),
    ofCluster("cluster_fleet_questions_total", { $0.questions }, "Questions about drivers and trips put to all hubs."),
    ofCluster(
      "cluster_fleet_questions_incomplete_total", { $0.questionsIncomplete },
      "Questions put to all hubs, answered without a hub that was too slow."),
    ofCluster(
      "cluster_restarts_total", { $0.restarts }, "Times that all channels of another hub were asked for again."),
    ofCluster(
      "cluster_overflows_total", { $0.overflows }, "Times that data queued for another hub was dropped at a limit."),
    ofCluster("cluster_refusals_total", { $0.refusals }, "Questions of sessions that no other hub answered."),
    ofCluster(
      "cluster_owner_conflicts_total", { $0.ownerConflicts }, "Trips that began here though another hub has them."),
  ]

  private static func ofCluster<Number: BinaryInteger & SendableMetatype>(
    _ name: String, _ read: @escaping @Sendable (ClusterCounters) -> Number, _ help: String
  ) -> Metric {
    Metric(name, help) { $0.cluster.map(read) }
  }
}
