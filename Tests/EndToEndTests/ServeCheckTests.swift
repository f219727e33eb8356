// `serve --check`, and what settings of the environment do, as an operator sees it.
import Foundation
import Testing

extension EndToEnd {
  @Suite(.enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  struct ServeChecks {}
}

extension EndToEnd.ServeChecks {
  @Test("good settings: each is printed with its source, and nothing is bound or written")
  func good() throws {
    let directory = try JournalDirectory()
    defer { withExtendedLifetime(directory) {} }
    let folder = URL(filePath: directory.path)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = try TemporaryFile("heartbeat = 7\nallow-origin = https://a.example\nallow-origin = https://b.example\n")
    let listener = try Listener()
    let outcome = try HubProcess.run(
      ["serve", "--check", "--dev-auth", "--port", "\(listener.port)", "--config", file.path, "--data", "data"],
      in: folder.path, environment: ["LHUB_MAX_DRIVERS": "500"])
    #expect(outcome.status == 0, "\(outcome.errors)")
    let rows = outcome.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
    #expect(rows.contains(["port", "\(listener.port)", "--port"]))
    #expect(rows.contains(["max-drivers", "500", "LHUB_MAX_DRIVERS"]))
    #expect(rows.contains(["heartbeat", "7", "\(file.path):1:", "heartbeat"]))
    #expect(rows.contains(["allow-origin", "https://b.example", "\(file.path):3:", "allow-origin"]))
    #expect(rows.contains(["host", "127.0.0.1", "default"]))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
  }

  @Test("all faults are reported at once, with exit code 2, also those of files")
  func faults() throws {
    let file = try TemporaryFile("prot = 1\nloops = 0\n")
    let outcome = try HubProcess.run(
      [
        "serve", "--check", "--host", "0.0.0.0", "--dev-auth", "--port", "70000", "--config", file.path,
        "--token-keys", "/nonexistent/keys", "--tls-cert", "/nonexistent/hub.pem", "--max-message", "16M",
      ], environment: ["LHUB_MAX_DRIVRES": "1"])
    #expect(outcome.status == 2)
    #expect(outcome.output.isEmpty)
    for fault in [
      "there is no setting prot; did you mean port?",
      "\(file.path):2: loops must be a whole number from 1 to 64, not 0",
      "--port must be a whole number from 0 to 65535, not 70000", "did you mean LHUB_MAX_DRIVERS?",
      "cannot read /nonexistent/keys", "--tls-cert needs its key", "--max-message (16777216) is more than",
      "--dev-auth lets anyone in and is refused on 0.0.0.0",
    ] {
      #expect(outcome.errors.contains(fault), "\(outcome.errors)")
    }
  }

  @Test(
    "what is wrong with a stream is reported with its section",
    arguments: [
      ("stream = kafka://h", "stream must be nats://HOST[:PORT]"), ("stream = nats://h", "give channel = *"),
      ("stream = nats://h\nchannel = *\nmax-length = 5000", "[a]: max-length is not for a stream to nats://h:4222"),
      ("stream = nats://h\nchannel = *\nurl = https://h/", "url is not for a stream"),
      ("stream = nats://h\nchannel = *\nprefix = {p}", "a prefix of NATS has no braces"),
      ("stream = http://h/\nchannel = *", "http is for addresses in allow"),
      ("stream = https://h/\nchannel = *", "give secret-file"),
      ("stream = redis://h\nchannel = *\nuser = u", "user needs password-file"),
      ("url = https://h/\nchannel = *\nprefix = p", "prefix is for streams"),
      (
        (0..<5).map { "stream = nats://h\nchannel = *\n[b\($0)]\n" }.joined() + "stream = nats://h\nchannel = *",
        "give up to 16 webhooks and 4 streams"
      ),
    ])
  func streams(text: String, fault: String) throws {
    let file = try TemporaryFile("[a]\n" + text + "\n")
    let outcome = try HubProcess.run(["serve", "--check", "--dev-auth", "--webhooks", file.path])
    #expect(outcome.status == 2 && outcome.errors.contains(fault), "\(outcome.errors)")
  }

  @Test("streams of all kinds are good settings")
  func goodStreams() throws {
    let secret = try TemporaryFile("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n")
    let file = try TemporaryFile(
      """
      [bus]
      stream = nats://h
      token-file = \(secret.path)
      channel = *
      positions = on
      [cache]
      stream = rediss://h:7000
      prefix = {hub}
      max-length = 5000
      channel = trip:*
      [lake]
      stream = http://10.0.0.1/in
      allow = 10.0.0.0/8
      secret-file = \(secret.path)
      channel = trips

      """)
    let text = try String(contentsOfFile: file.path, encoding: .utf8)
    let ofWindows = try TemporaryFile("\u{FEFF}# streams\r\n" + text.replacingOccurrences(of: "\n", with: "\r\n"))
    for path in [file.path, ofWindows.path] {
      let outcome = try HubProcess.run(["serve", "--check", "--dev-auth", "--webhooks", path, "--data", "data"])
      #expect(outcome.status == 0, "\(outcome.errors)")
    }
  }

  @Test("webhooks that come with SIGHUP to a hub without a journal are refused, and it continues")
  func webhooksWithoutJournal() throws {
    let secret = try TemporaryFile("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n")
    let webhooks = try TemporaryFile("[a]\nurl = https://h/\nchannel = *\nsecret-file = \(secret.path)\n")
    let settings = try TemporaryFile("no-journal = true\n")
    let hub = try HubProcess(
      ["serve", "--port", "0", "--dev-auth", "--config", settings.path, "--log-level", "info"], in: "/tmp")
    try hub.waitUntilItListens()
    try "webhooks = \(webhooks.path)\n".write(toFile: settings.path, atomically: true, encoding: .utf8)
    hub.send(signal: SIGHUP)
    try hub.waitForError("the hub was started without a journal")
    let peer = try Peer(port: hub.port, query: "role=ops&id=o")
    _ = try peer.receive("connected")
    hub.send(signal: SIGTERM)
    let outcome = try hub.outcome()
    #expect(outcome.status == 0, "\(outcome.errors)")
  }

  @Test("a request for a webhook that is not there is refused, and so is a pace that no clock has")
  func refusedRequests() throws {
    let directory = try JournalDirectory()
    try FileManager.default.createDirectory(
      atPath: directory.path + "/webhooks", withIntermediateDirectories: true)
    for word in ["enable", "dead"] {
      let outcome = try HubProcess.run(["webhooks", word, "ordres", "--data", directory.path])
      #expect(outcome.status == 1 && outcome.errors.contains("no webhook or stream ordres"), "\(outcome.errors)")
    }
    try "damaged\n".write(toFile: directory.path + "/webhooks/orders.progress", atomically: true, encoding: .utf8)
    let list = try HubProcess.run(["webhooks", "list", "--data", directory.path])
    #expect(list.status == 1 && list.output.hasPrefix("orders unreadable"), "\(list.output)\(list.errors)")
    let replay = try HubProcess.run(["replay", "--speed", "1e-10", "trace.csv"])
    #expect(replay.status == 2 && replay.errors.contains("--speed must be 0, or"), "\(replay.errors)")
  }

  @Test("a variable that no setting has ends a start, too, and a secret in a file is not shown")
  func variables() throws {
    let wrong = try HubProcess.run(["serve", "--dev-auth"], environment: ["LHUB_HEARTBEET": "7"])
    #expect(wrong.status == 2)
    #expect(wrong.errors.contains("there is no setting for the variable LHUB_HEARTBEET; did you mean LHUB_HEARTBEAT?"))
    let unread = try HubProcess.run(["serve"], environment: ["LHUB_TOKEN_KEYS": "/nonexistent/keys"])
    #expect(unread.status == 2 && unread.errors.contains("/nonexistent/keys"), "\(unread.errors)")
    let secret = String(repeating: "s3cret", count: 8)
    let file = try TemporaryFile(secret)
    let outcome = try HubProcess.run(["serve", "--check"], environment: ["LHUB_TOKEN_KEYS": file.path])
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.output.contains("LHUB_TOKEN_KEYS"))
    #expect(!outcome.output.contains("s3cret"))
  }

  @Test("A row of --client-cert as help shows it works in a variable, and a path with a space is counted as two files")
  func variablesWithSpaces() throws {
    let row = "DNS:api.example=ops,dispatch"
    #expect(try HubProcess.run(["serve", "--help"]).output.contains(row))
    let client = try HubProcess.run(["serve", "--check", "--dev-auth"], environment: ["LHUB_CLIENT_CERT": row])
    #expect(client.status == 2 && client.errors.contains("give --client-ca too"), "\(client.errors)")
    #expect(!client.errors.contains("must be"), "\(client.errors)")
    let paths = ["LHUB_TLS_CERT": "/my certificates/hub.pem", "LHUB_TLS_KEY": "/hub.key"]
    let files = try HubProcess.run(["serve", "--check", "--dev-auth"], environment: paths)
    #expect(files.status == 2 && files.errors.contains("--tls-cert names 2 files and --tls-key 1"), "\(files.errors)")
    #expect(files.errors.contains("LHUB_TLS_CERT"), "\(files.errors)")
  }

  @Test("--log-format json: each line of the log is an object of strings")
  func jsonLog() throws {
    let hub = try HubProcess.serve(["--log-format", "json"])
    hub.send(signal: SIGTERM)
    let lines = try hub.outcome().errors.split(separator: "\n")
    #expect(!lines.isEmpty)
    for line in lines {
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: String]
      #expect(object?["time"] != nil && object?["level"] != nil && object?["event"] != nil, "\(line)")
    }
  }

  @Test(
    "version names the release, the commit, the compiler and the OpenSSL that is loaded",
    arguments: ["version", "--version"])
  func version(word: String) throws {
    let outcome = try HubProcess.run([word])
    #expect(outcome.status == 0)
    #expect(
      outcome.output.firstMatch(
        of: /^locationhub [0-9]+\.[0-9]+\.[0-9]+\S* \(commit [0-9a-z-]+, Swift [0-9.]+, OpenSSL [0-9].*\)\n$/) != nil,
      "\(outcome.output)")
  }

  @Test("SIGHUP: what can change does, what can't is named, and a file with a fault changes nothing")
  func reload() throws {
    let file = try TemporaryFile("max-per-address = 4\nlog-level = warning\nallow-origin = https://a.example\n")
    func write(_ text: String) throws { try text.write(toFile: file.path, atomically: false, encoding: .utf8) }
    let hub = try HubProcess.serve(["--config", file.path])
    /// What a page of this origin gets.
    func ask(_ origin: String) throws -> HTTPResponse {
      let connection = try RawConnection(port: hub.port)
      try connection.send(
        "GET /v1/trips/T1?role=ops&id=o HTTP/1.1\r\nHost: localhost\r\nOrigin: \(origin)\r\nConnection: close\r\n\r\n")
      return try connection.readResponse()
    }
    let old = "https://a.example"
    let new = "https://b.example"
    #expect(try ask(old).fields["access-control-allow-origin"] == old)
    #expect(try ask(new).fields["access-control-allow-origin"] == nil)
    let stays = try Peer(port: hub.port, query: "role=rider&id=r1")
    _ = try stays.receive("connected")

    try write("max-per-address = none\nallow-origin = \(new)\n")
    hub.send(signal: SIGHUP)
    try hub.waitForError("max-per-address must be a whole number")
    #expect(try ask(old).fields["access-control-allow-origin"] == old)

    try write("max-per-address = 1\nlog-level = info\nallow-origin = \(new)\nmax-drivers = 7\n")
    hub.send(signal: SIGHUP)
    try hub.waitForError("event=reloaded changed=allow-origin,log-level,max-per-address")
    try hub.waitForError("event=needs_restart settings=max-drivers")
    // The session that was there before stays, and one more connection of its address is one too many.
    // Loops take the settings over in their next turns.
    var deadline = Deadline()
    var answer = try ask(new)
    while answer.status != 429, !deadline.isOver { answer = try ask(new) }
    #expect(answer.status == 429)
    try write("max-per-address = 3\nallow-origin = \(new)\n")
    hub.send(signal: SIGHUP)
    try hub.waitForError("event=reloaded changed=log-level,max-per-address")
    deadline = Deadline()
    answer = try ask(new)
    while answer.status == 429, !deadline.isOver { answer = try ask(new) }
    #expect(answer.fields["access-control-allow-origin"] == new)
    hub.send(signal: SIGTERM)
    #expect(try hub.outcome().status == 0)
  }
}
