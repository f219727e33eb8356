// How many processors a process may use, which is how many loops a hub has unless it is told.
import CHubLinux
import Glibc
import HubSystem
import Testing

@Suite struct ProcessorsTests {
  @Test("the group of cgroup v2 is found among those of v1")
  func group() {
    #expect(ProcessFacts.controlGroup(in: "4:memory:/a\n0::/system.slice/hub.service\n") == "/system.slice/hub.service")
    #expect(ProcessFacts.controlGroup(in: "0::/\n") == "/")
    #expect(ProcessFacts.controlGroup(in: "1:cpu:/a\n") == nil)
  }

  @Test(
    "the least quota of the group and those around it counts, rounded up",
    arguments: [
      ("max 100000\n", "max 100000\n", nil), ("150000 100000\n", "max 100000\n", 2), ("100000 100000\n", nil, 1),
      ("400000 100000", "50000 100000", 1), (nil, "300000 100000\n", 3), ("1000 100000\n", nil, 1),
      ("0 100000\n", "", nil), ("100000 0\n", "garbage", nil),
      ("9223372036854775807 1\n", "99999999999999999999 1", Int.max),
    ] as [(String?, String?, Int?)])
  func quota(own: String?, outer: String?, processors: Int?) {
    var asked: [String] = []
    let quota = ProcessFacts.processorQuota(of: "/outer/own") { path in
      asked.append(path)
      return (path == "/outer/own" ? own : path == "/outer" ? outer : nil).map { Array($0.utf8) }
    }
    #expect(quota == processors)
    #expect(asked == ["/outer/own", "/outer", ""])
  }

  @Test("a process that is bound to one processor has one")
  func affinity() throws {
    #expect(ProcessFacts.processors >= 1)
    // Of a thread of its own, so that others keep theirs.
    let count = Locked(0)
    let thread = try startThread(name: "bound") {
      var set = cpu_set_t()
      guard unsafe sched_getaffinity(0, MemoryLayout<cpu_set_t>.size, &set) == 0 else { return }
      unsafe withUnsafeMutableBytes(of: &set) { bytes in
        let first = unsafe bytes.firstIndex { $0 != 0 } ?? 0
        for index in bytes.indices {
          let byte = unsafe bytes[index]
          unsafe bytes[index] = index == first ? byte & ~(byte &- 1) : 0
        }
      }
      guard unsafe sched_setaffinity(0, MemoryLayout<cpu_set_t>.size, &set) == 0 else { return }
      count.withLock { $0 = ProcessFacts.processors }
    }
    thread.join()
    #expect(count.withLock { $0 } == 1)
  }
}
