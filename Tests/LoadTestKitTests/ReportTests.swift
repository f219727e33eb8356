// Results as JSON, table and page.
import HubCommandLine
import Testing

@testable import HubLoadTestKit

@Suite struct ReportTests {
  @Test("results that are written as JSON are read again as they were")
  func roundTrip() throws {
    var bad = sampleRun("fan-out \"x\" \\ \u{1} ü")
    bad.invalid = ["a thread was busy"]
    bad.violations = ["lost: 3"]
    var results = Results(machine: "2 × a processor", runs: [sampleRun(), bad])
    results.steps = [
      RateStep(
        offered: 5, fixesPerSecond: 1000, deliveriesPerSecond: 999.5, p99: 300, hubCores: 0.25, isValid: true,
        isKept: false)
    ]
    results.bound = 50_000
    results.kind = SpeedRun.kind
    #expect(try Results(parsing: results.json, file: "a.json") == results)
    #expect(results.json.contains("\"valid\": false"))
  }

  @Test(
    "a file that is no result is refused with its name",
    arguments: [
      "", "[]", "{\"format\":2,\"machine\":\"\",\"runs\":[]}", "{\"format\":1,\"machine\":\"\",\"runs\":[{}]}",
    ])
  func refused(text: String) {
    do throws(LoadTestError) {
      _ = try Results(parsing: text, file: "a.json")
      Issue.record("it was read")
    } catch {
      #expect(error.description.contains("a.json"))
    }
  }

  @Test("a number that no figure can be is refused with the file's name, wherever it stands", arguments: 0...2)
  func huge(place: Int) {
    var run = sampleRun()
    switch place {
    case 0: run.figures[.sent] = 1e300
    case 1: run.parts[0].maximum = 1e300
    case _: run.buckets[0].count = 1e300
    }
    do throws(LoadTestError) {
      _ = try Results(parsing: Results(machine: "", runs: [run]).json, file: "a.json")
      Issue.record("it was read")
    } catch {
      #expect(error.description.hasPrefix("a.json: run 1 lacks something, or has a figure of over"))
    }
  }

  @Test("steps of an older file, without the rate that was offered, are read")
  func olderSteps() throws {
    let text = #"{"format":1,"machine":"","runs":[],"steps":[[10,9,300,0.5,1,1]]}"#
    #expect(try Results(parsing: text, file: "a").steps.first?.offered == 10)
  }

  @Test("a dot's title has the value of its own point, though others cannot be drawn")
  func dots() {
    let figure = Plot(
      "", x: "", y: "", yScale: .logarithmic,
      series: [Plot.Series(name: "a", color: 1, mark: .points, points: [(1, 0), (2, 5)])]
    ).html
    #expect(figure.contains("<title>a: 2, 5</title>") && !figure.contains("<title>a: 1"))
  }

  @Test("the table shows what a run has, losses also where there are none, and what speaks against the run")
  func table() {
    let text = ResultTable.text(sampleRun())
    #expect(text.contains("latency p99") && text.contains("1891 µs") && text.contains("20.0 ms"))
    #expect(text.contains("lost") && !text.contains("batches"))
    var bad = sampleRun()
    bad.violations = ["lost: 3"]
    #expect(ResultTable.text(bad).contains("VIOLATED: lost: 3") && !bad.isGood)
  }

  @Test("a page has a plot over time, a histogram and percentiles, and needs nothing from elsewhere")
  func page() {
    let page = HTMLReport.page([("a.json", Results(machine: "here", runs: [sampleRun()]))])
    #expect(
      page.contains("Latency over time") && page.contains("how it is distributed") && page.contains("by percentile"))
    #expect(!page.contains("http") && !page.contains("<script") && !page.contains("nan") && !page.contains("inf\""))
    #expect(page.count { $0 == "<" } == page.count { $0 == ">" })
  }

  @Test(
    "where no position is expected, the page has the plots of what else was timed",
    arguments: [
      (Figure.spreadP50, "From the tick to its reader"), (.ackP50, "due to its ack"), (.connectP50, "Time to connect"),
    ])
  func otherTimes(figure: Figure, title: String) {
    var run = sampleRun("area")
    run.parts = []
    for latency in [Figure.latencyP50, .latencyP99, .latencyMax] { run.figures[latency] = nil }
    run.figures[figure] = 500
    let page = HTMLReport.page([("a", Results(machine: "", runs: [run]))])
    #expect(page.contains("\(title): how it is distributed") && page.contains("\(title): by percentile"))
    #expect(!page.contains("Latency"))
  }

  @Test("of many runs each is opened by a click, and a percentile has as many nines as there are")
  func many() {
    func page(_ count: Int) -> String {
      HTMLReport.page([("a", Results(machine: "", runs: Array(repeating: sampleRun(), count: count)))])
    }
    #expect(!page(4).contains("details class=\"run\"") && page(5).contains("details class=\"run\""))
    #expect(page(1).contains(">50<") && !page(1).contains("99.0<"))
  }

  @Test("several sizes make plots of how cost grows, and a search its three")
  func several() {
    var results = Results(machine: "here", runs: [sampleRun(), sampleRun(connections: 1000)])
    #expect(HTMLReport.page([("a", results)]).contains("How cost grows"))
    results.steps = [
      RateStep(
        offered: 1, fixesPerSecond: 10, deliveriesPerSecond: 10, p99: 9, hubCores: 0.1, isValid: true, isKept: true),
      RateStep(
        offered: 2, fixesPerSecond: 20, deliveriesPerSecond: 19, p99: 99_000, hubCores: 0.2, isValid: true,
        isKept: false),
    ]
    results.bound = 50_000
    let page = HTMLReport.page([("a", results)])
    #expect(
      page.contains("Throughput over offered rate") && page.contains("10 fixes and 10 positions a second is the most"))
  }

  @Test("names from files are text on the page")
  func escaping() {
    var run = sampleRun("<script>")
    run.about = "a & b"
    let page = HTMLReport.page([("a", Results(machine: "<b>", runs: [run]))])
    #expect(!page.contains("<script") && !page.contains("<b>") && page.contains("a &amp; b"))
  }

  @Test("rows that divide the same CPU say by what, and little of it has three decimals")
  func costs() {
    let titles = [Figure.cpuPerFix, .cpuPerDelivery, .cpuPerAreaUpdate].map(\.title)
    #expect(titles.allSatisfy { $0.hasPrefix("all hub CPU over ") } && Set(titles).count == 3)
    #expect(Figure.hubCores.text(0.0123) == "0.012 cores" && Figure.hubCores.text(0.123) == "0.12 cores")
    #expect(Set(Figure.allCases.map(\.title)).count == Figure.allCases.count)
    #expect(ResultTable.text(sampleRun()).contains("do not add up"))
  }

  @Test("numbers have the decimals asked for, and thousands their commas")
  func numbers() {
    #expect(decimals(1.005, 1) == "1.0" && decimals(-0.26, 1) == "-0.3" && decimals(12, 0) == "12")
    #expect(grouped(1_234_567) == "1,234,567" && grouped(-12) == "-12" && grouped(100) == "100")
    #expect(Plot.short(12_300) == "12.3k" && Plot.short(0.25) == "0.25" && Plot.short(100) == "100")
  }
}
