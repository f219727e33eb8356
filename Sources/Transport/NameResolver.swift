// Host names to addresses: getaddrinfo(3) blocks without a time limit, so it runs on a thread of its own, and the
// answer comes back through the loop's waker.
import CHubLinux
import Glibc
import HubBytes
package import HubSystem

/// Looks up the hosts of one loop's clients, one after the other. The thread starts with the first name.
package final class NameResolver {
  package struct Question: Sendable {
    package let client: Int
    /// The number of the client's look-up: an answer to an earlier one is dropped.
    package let attempt: UInt64
    let host: String
    let port: UInt16

    package init(client: Int, attempt: UInt64, host: String, port: UInt16) {
      self.client = client
      self.attempt = attempt
      self.host = host
      self.port = port
    }
  }

  package struct Answer: Sendable {
    package let question: Question
    package let result: Result<[SocketAddress], LookupError>
  }

  package struct LookupError: Error { package let text: String }

  private let questions: JobQueue<Question>
  private let answers: Mailbox<Answer>
  private var isRunning = false

  /// With `capacity` waiting questions one more is refused.
  package init(capacity: Int, waking waker: Waker) {
    questions = JobQueue(capacity: capacity)
    answers = Mailbox(capacity: capacity, waking: waker)
  }

  /// Waiting names are not looked up any more; the thread ends after its present look-up.
  deinit { questions.close() }

  /// Asks; false at the limit, or without a thread.
  package func ask(_ question: Question) -> Bool {
    if !isRunning {
      let (questions, answers) = (questions, answers)
      do throws(SystemError) {
        _ = try startThread(name: "hub-names") {
          while let question = questions.next() {
            // A full mailbox means that as many answers are unread: then this one is dropped.
            _ = answers.append(Answer(question: question, result: NameResolver.look(up: question)))
          }
        }
        isRunning = true
      } catch {
        return false
      }
    }
    return questions.append(question)
  }

  package func takeAnswers() -> [Answer] {
    var batch: [Answer] = []
    answers.drain(into: &batch)
    return batch
  }

  /// All addresses, in the order of RFC 6724.
  private static func look(up question: Question) -> Result<[SocketAddress], LookupError> {
    var hints = unsafe addrinfo()
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let number = unsafe getaddrinfo(question.host, nil, &hints, &list)
    guard number == 0 else { return unsafe .failure(LookupError(text: String(cString: gai_strerror(number)))) }
    defer { unsafe freeaddrinfo(list) }
    var addresses: [SocketAddress] = []
    var entry = unsafe list
    while let info = unsafe entry?.pointee {
      if let address = unsafe SocketAddress(info, port: question.port), !addresses.contains(address) {
        addresses.append(address)
      }
      unsafe entry = info.ai_next
    }
    return addresses.isEmpty ? .failure(LookupError(text: "no IPv4 or IPv6 address")) : .success(addresses)
  }
}
