// hub-loadtest: what does one message cost the hub?
//
//   swift run -c release hub-loadtest SCENARIO [--drivers N] [--rate HZ] [--riders-per-trip K] [--idle N]
//       [--compression on] [--tls on] [--duration S] [--server-cpu LIST] [--executable PATH] [-- options of `locationhub serve`]
//   … hub-loadtest abuse   see AbuseRun.swift
import Glibc
import ServerProcess
import Transport

var words = Array(CommandLine.arguments.dropFirst())
guard let name = words.first,
  var scenario = (Scenario.all + [AbuseRun.good]).first(where: { $0.name == name })
else { fail("name a scenario: \(Scenario.all.map(\.name).joined(separator: ", ")), abuse") }
words.removeFirst()
var executable = String(CommandLine.arguments[0].prefix { _ in true })
executable =
  executable.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/") + "/locationhub"
var serverCPU: String?
var serverOptions: [String] = []
var attackers = 5000
while let word = words.first {
  words.removeFirst()
  if word == "--" {
    serverOptions = words
    break
  }
  guard let value = words.first else { fail("\(word) needs a value") }
  words.removeFirst()
  switch word {
  case "--drivers": scenario.drivers = Int(value) ?? 0
  case "--rate": scenario.rate = Double(value) ?? 1
  case "--riders-per-trip": scenario.ridersPerTrip = Int(value) ?? 0
  case "--idle": scenario.idle = Int(value) ?? 0
  case "--compression": scenario.compression = value == "on"
  case "--tls": scenario.tls = value == "on"
  case "--attackers": attackers = Int(value) ?? 0
  case "--duration": scenario.duration = Double(value) ?? 10
  case "--server-cpu": serverCPU = value
  case "--executable": executable = value
  default: fail("there is no option \(word)")
  }
}
let limit = try ProcessFacts.raiseOpenFileLimit()
if name == "abuse" {
  var run = AbuseRun(executable: executable)
  if scenario.duration > 0 { run.duration = scenario.duration }
  run.attackers = attackers
  run.serverCPU = serverCPU
  run.serverOptions = serverOptions
  exit(try run.run() ? 0 : 1)
}
if !serverOptions.contains("--loops") { serverOptions += ["--loops", "1"] }
if !serverOptions.contains("--data") { serverOptions += ["--no-journal"] }

/// Made for this run only; the files are gone when the hub has read them.
let certificate = scenario.tls ? RunCertificate() : nil
if let certificate { serverOptions += ["--tls-cert", certificate.certificateFile, "--tls-key", certificate.keyFile] }

guard
  let server = ServerProcess(
    executable: executable,
    arguments: ["serve", "--port", "0", "--dev-auth", "--session-rate", "0"] + serverOptions, cpus: serverCPU)
else { fail("cannot start \(executable)") }

certificate?.removeFiles()
let client: TLSClient? = try certificate.map { certificate throws(TLSError) in
  try TLSClient(trusting: certificate.authority.pem)
}
let generator = try Generator(scenario, address: server.address, tls: client)
guard generator.connectionCount < limit - 32 else { fail("\(limit) open files are too few") }

@MainActor func run(seconds: Double) {
  let end = ClockReading.read().uptimeNanoseconds + Int64(seconds * 1e9)
  while ClockReading.read().uptimeNanoseconds < end { generator.loop.runTurn(timeoutMilliseconds: 10) }
}

let residentBefore = server.residentBytes
let connectStart = ClockReading.read().uptimeNanoseconds
let cpuBeforeConnect = server.cpu
try generator.connectAll()
let connectSeconds = Double(ClockReading.read().uptimeNanoseconds - connectStart) / 1e9
let cpuAfterConnect = server.cpu
run(seconds: 0.5)
let residentAfter = server.residentBytes
let connections = generator.connectionCount
let cpuOfConnecting =
  cpuAfterConnect.user + cpuAfterConnect.system - cpuBeforeConnect.user - cpuBeforeConnect.system
show(
  "\(scenario.name): \(connections) connections in \(decimals(connectSeconds)) s, "
    + "\(decimals(cpuOfConnecting * 1e6 / Double(connections), 1)) µs CPU each, "
    + "\((residentAfter - residentBefore) / max(1, connections)) B resident each, \(residentAfter / 1024) KiB in all")

if scenario.drivers > 0 {
  generator.startSending()
  run(seconds: scenario.warmUp)
  let before = generator.measurement
  let cpuBefore = server.cpu
  let ownBefore = ProcessFacts.cpuTimeNanoseconds()
  let start = ClockReading.read().uptimeNanoseconds
  generator.measuring = true
  run(seconds: scenario.duration)
  let cpuAfter = server.cpu
  let ownAfter = ProcessFacts.cpuTimeNanoseconds()
  let seconds = Double(ClockReading.read().uptimeNanoseconds - start) / 1e9
  let after = generator.measurement
  generator.measuring = false
  generator.isSending = false
  run(seconds: 1)
  let end = generator.measurement
  let sent = Double(after.sent - before.sent)
  let delivered = Double(after.delivered - before.delivered)
  let user = cpuAfter.user - cpuBefore.user
  let system = cpuAfter.system - cpuBefore.system
  show(
    "  sent \(end.sent), expected \(end.expected), delivered \(end.delivered), out of order \(end.outOfOrder), "
      + "errors \(end.errors)")
  show(
    "  \(Int(sent / seconds)) fixes/s, \(Int(delivered / seconds)) deliveries/s; server CPU "
      + "\(decimals((user + system) * 1e6 / delivered)) µs a delivery (user \(decimals(user * 1e6 / delivered)), "
      + "system \(decimals(system * 1e6 / delivered))), \(decimals((user + system) * 1e6 / sent)) µs a fix; "
      + "server \(decimals((user + system) / seconds * 100, 0)) % of a core, generator "
      + "\(decimals(Double(ownAfter - ownBefore) / 1e7 / seconds, 0)) %")
  let h = generator.latency
  show(
    "  latency from when due: p50 \(h.value(atQuantile: 0.5)) µs, p90 \(h.value(atQuantile: 0.9)), "
      + "p99 \(h.value(atQuantile: 0.99)), p99.9 \(h.value(atQuantile: 0.999)), max \(h.maximum)")
}
server.stop()
