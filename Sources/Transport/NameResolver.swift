// Host names to addresses: getaddrinfo(3) blocks without a time limit, so it runs on threads of its own, and the answer
// comes back through the loop's waker.
import CHubLinux
import Glibc
import HubBytes
package import HubSystem

/// Looks up the hosts of one loop's clients, as many at once as there may be threads. They start when they are needed.
package final class NameResolver {
  package struct Question: Sendable {
    package let client: Int
    /// The number of the client's look-up.
    package let attempt: UInt64
    package let host: String
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

  package struct LookupError: Error {
    package let text: String

    package init(text: String) { self.text = text }
  }

  private let questions: JobQueue<Question>
  private let answers: Mailbox<Answer>
  private let maximumThreads: Int
  private let lookUp: @Sendable (Question) -> Result<[SocketAddress], LookupError>
  private var threads = 0
  /// Questions whose answers have not been taken yet.
  private var openQuestions = 0

  /// At most `capacity` questions may be unanswered; one more is refused. Names that take long delay others only where
  /// each of `threads` is busy with one. `lookUp` is called on these threads.
  package init(
    capacity: Int, threads: Int = 1, waking waker: Waker,
    lookUp: @escaping @Sendable (Question) -> Result<[SocketAddress], LookupError> = NameResolver.systemAddresses
  ) {
    questions = JobQueue(capacity: capacity)
    answers = Mailbox(capacity: capacity, waking: waker)
    maximumThreads = threads
    self.lookUp = lookUp
  }

  /// Waiting names are not looked up any more; the threads end after their present look-ups.
  deinit { questions.close() }

  /// Asks a question; false at the limit, or where no thread could be started.
  package func ask(_ question: Question) -> Bool {
    guard openQuestions < questions.capacity else { return false }
    if threads <= min(openQuestions, maximumThreads - 1) { startOneMore() }
    guard threads > 0, questions.append(question) else { return false }
    openQuestions += 1
    return true
  }

  private func startOneMore() {
    let (questions, answers, lookUp) = (questions, answers, lookUp)
    do throws(SystemError) {
      _ = try startThread(name: "hub-names") {
        while let question = questions.next() {
          // It is not full: it has room for as many answers as there may be open questions.
          _ = answers.append(Answer(question: question, result: lookUp(question)))
        }
      }
      threads += 1
    } catch {
      // The threads that run already answer, if there are any.
    }
  }

  package func takeAnswers() -> [Answer] {
    var batch: [Answer] = []
    answers.drain(into: &batch)
    openQuestions -= batch.count
    return batch
  }

  /// The system's answer: all addresses, in the order of RFC 6724. Blocks.
  package static func systemAddresses(of question: Question) -> Result<[SocketAddress], LookupError> {
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
