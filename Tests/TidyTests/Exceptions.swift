// What does not keep a rule of TidyTests yet, or keeps it in its own way. Nothing is added here without a reason that a
// reader would give as well.

enum Exceptions {
  static let longFiles: [String] = []

  /// Tables that are one expression or one switch over everything there is.
  static let longFunctions: [String] = [
    "Sources/HubCore/Durability/RecordJSON.swift: private static func write",
    "loadtest/LoadTestKit/Figure.swift: package var title: String {",
    "Tests/EndToEndTests/ReplayTests.swift: func restart",
  ]

  static let withoutHead: [String] = []

  /// Each says in itself why it is right.
  static let unsafeIslands = [
    "Sources/Bytes/ByteBuffer.swift",
    "Sources/Bytes/ByteRoom.swift",
    "Sources/Bytes/ChunkTable.swift",
    "Sources/Bytes/TurnList.swift",
    "Sources/Cluster/FrameKeys.swift",
    "Sources/Deflate/ZlibStream.swift",
    "Sources/Gateway/Server/Server.swift",
    "Sources/Gateway/Loop/SessionLoopDelegate.swift",
    "Sources/HubCore/DriverIndex/PagedSlab.swift",
    "Sources/HubCore/Durability/FixesRecord.swift",
    "Sources/HubCore/Durability/RecordReader.swift",
    "Sources/HubCore/FixInPlace.swift",
    "Sources/HubCore/HubOutput.swift",
    "Sources/HubRuntime/HubPort.swift",
    "Sources/HubRuntime/JournalQueue.swift",
    "Sources/HubRuntime/SharedHub.swift",
    "Sources/Journal/CRC32C.swift",
    "Sources/Journal/GroupCommit.swift",
    "Sources/Journal/GroupCursor.swift",
    "Sources/Journal/RecordCursor.swift",
    "Sources/LocationHubClient/URLSessionRunner.swift",
    "Sources/Messages/Binary/BinaryInput.swift",
    "Sources/Messages/JSON/JSONKey.swift",
    "Sources/Messages/JSON/JSONTape.swift",
    "Sources/Messages/JSON/NameSorter.swift",
    "Sources/Messages/Reading/MessageReader.swift",
    "Sources/System/JobQueue.swift",
    "Sources/System/Locked.swift",
    "Sources/System/Threads.swift",
    "Sources/Tokens/SigningKey.swift",
    "Sources/Transport/EventLoop+Assists.swift",
    "Sources/Transport/EventLoop.swift",
    "Sources/Transport/LoopState.swift",
    "Sources/Transport/Outbox.swift",
    "Sources/Transport/Poller.swift",
    "Sources/Transport/SendRing.swift",
    "Sources/Transport/TLS/TLSBuffers.swift",
    "Sources/Transport/TLS/TLSClient.swift",
    "Sources/Transport/TLS/TLSContext.swift",
    "Sources/Transport/TLS/TLSStream.swift",
    "Sources/Transport/TLS/TLSTable.swift",
    "loadtest/LoadTestKit/Generator.swift",
    "loadtest/LoadTestKit/HubProcess.swift",
    "loadtest/LoadTestKit/ModeSampler.swift",
  ]

  /// What the protocol or a format lays down, which no operator may change.
  static let limitsElsewhere = [
    "Sources/WebSocket/FrameHeader.swift: maximumLength",
    "Sources/WebSocket/FrameWriter.swift: maximumClientHeader",
    "Sources/WebSocket/FrameWriter.swift: maximumControlPayload",
    "Sources/WebSocket/FrameWriter.swift: maximumServerHeader",
  ]

  /// Switches over the names of JSON's members, of which each reader wants a few; and over kinds of generated messages.
  static let withDefault = [
    "Sources/Messages/Reading/PlainUpdate.swift",
    "loadtest/HostileMessages/HostileMessage.swift",
  ]

  /// They wait for other threads or processes, which no clock of theirs moves.
  static let sleepingTests = [
    "Tests/LoadTestKitTests/InterruptionTests.swift",
    "Tests/SystemTests/JobQueueTests.swift",
  ]
}
