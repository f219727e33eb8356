// The loop's socket calls, each written once and with errno as a value. TLS is between `receive` and `send` below and
// the loop (EventLoop+TLS.swift), and nowhere else.

import CHubLinux
import Glibc
import HubSystem

/// A loop's sockets: the kernel's, or those of a simulated network.
struct SocketCalls {
  private let network: (any Network)?
  /// Checked instead of `network`, which would be retained.
  private let isSimulated: Bool

  init(_ network: (any Network)?) {
    self.network = network
    isSimulated = network != nil
  }

  private static let socketType = Int32(SOCK_STREAM.rawValue)
  private static let flags = Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)

  /// A bound and listening socket, and its address with the actual port. Options that accepted sockets inherit on Linux
  /// (TCP_NODELAY, TCP_NOTSENT_LOWAT, SO_SNDBUF) are set here, which saves these calls for each connection.
  func listener(
    _ address: SocketAddress, reusePort: Bool, backlog: Int32, limits: EventLoopLimits
  ) throws(SystemError) -> (Int32, SocketAddress) {
    if isSimulated, let network { return try network.listen(address) }
    let socket = try Self.boundSocket(address, reusePort: reusePort)
    try Self.setStreamOptions(socket.raw, limits)
    guard listen(socket.raw, backlog) == 0 else { throw SystemError("listen") }
    let bound = try Self.localAddress(socket.raw)
    return (socket.release(), bound)
  }

  /// A listener that another process has opened, for this loop. That process chose the length of its queue.
  func listener(_ socket: consuming Descriptor, limits: EventLoopLimits) throws(SystemError) -> Int32 {
    try Self.setStreamOptions(socket.raw, limits)
    return socket.release()
  }

  /// A socket bound to `address` with SO_REUSEADDR (connections in TIME_WAIT do not matter), not listening.
  static func boundSocket(_ address: SocketAddress, reusePort: Bool) throws(SystemError) -> Descriptor {
    let socket = try Descriptor(Glibc.socket(address.family, socketType | flags, 0), from: "socket")
    try set(socket.raw, SOL_SOCKET, SO_REUSEADDR, 1)
    if reusePort { try set(socket.raw, SOL_SOCKET, SO_REUSEPORT, 1) }
    // `::` accepts IPv4 too, whatever net.ipv6.bindv6only says.
    if address.isIPv6 { try set(socket.raw, Int32(IPPROTO_IPV6), IPV6_V6ONLY, address.isWildcard ? 0 : 1) }
    guard unsafe address.withSockaddr({ unsafe bind(socket.raw, $0, $1) }) == 0 else { throw SystemError("bind") }
    return socket
  }

  /// A connecting socket, and the errno where it failed at once.
  func connecting(
    to address: SocketAddress, from local: SocketAddress?, limits: EventLoopLimits
  ) throws(SystemError) -> (descriptor: Int32, errno: Int32) {
    if isSimulated, let network { return try network.connect(to: address) }
    let socket = try Descriptor(Glibc.socket(address.family, Self.socketType | Self.flags, 0), from: "socket")
    try Self.setStreamOptions(socket.raw, limits)
    if let local {
      // The port is chosen when the destination is known, so that one source address serves more than 28,000
      // connections in all (ip(7), IP_BIND_ADDRESS_NO_PORT).
      if local.port == 0 { try Self.set(socket.raw, Int32(IPPROTO_IP), Self.ipBindAddressNoPort, 1) }
      guard unsafe local.withSockaddr({ unsafe bind(socket.raw, $0, $1) }) == 0 else { throw SystemError("bind") }
    }
    let outcome = unsafe address.withSockaddr { unsafe Glibc.connect(socket.raw, $0, $1) }
    let number = outcome == 0 || errno == EINPROGRESS || errno == EINTR ? 0 : errno
    return (socket.release(), number)
  }

  // linux/in.h; glibc has it in a header that the importer does not read.
  private static let ipBindAddressNoPort: Int32 = 24
  // From linux/tcp.h.
  private static let tcpNotSentLowWater: Int32 = 25

  private static func setStreamOptions(_ socket: Int32, _ limits: EventLoopLimits) throws(SystemError) {
    // The loop writes all its output once a turn: Nagle's algorithm could only delay that.
    try set(socket, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
    if limits.kernelUnsentBytes > 0 {
      try set(socket, Int32(IPPROTO_TCP), tcpNotSentLowWater, limits.kernelUnsentBytes)
    }
    if limits.kernelSendBufferBytes > 0 {
      try set(socket, SOL_SOCKET, SO_SNDBUF, limits.kernelSendBufferBytes)
    }
  }

  private static func set(_ socket: Int32, _ level: Int32, _ option: Int32, _ value: Int32) throws(SystemError) {
    var value = value
    guard unsafe setsockopt(socket, level, option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0 else {
      throw SystemError("setsockopt")
    }
  }

  /// The address that the socket is bound to.
  static func localAddress(_ socket: Int32) throws(SystemError) -> SocketAddress {
    let (result, address) = unsafe SocketAddress.reading { unsafe getsockname(socket, $0, $1) }
    guard result == 0 else { throw SystemError("getsockname") }
    guard let address else { throw SystemError(call: "getsockname", errno: EAFNOSUPPORT) }
    return address
  }

  /// Takes the next waiting connection of a listener.
  func accept(_ listener: Int32) -> Accepted {
    if isSimulated, let network { return network.accept(listener) }
    let (descriptor, address) = unsafe SocketAddress.reading { unsafe accept4(listener, $0, $1, Self.flags) }
    if descriptor >= 0 {
      guard let address else {
        close(descriptor)
        return .lost
      }
      return .connection(descriptor, address)
    }
    switch errno {
    case EAGAIN: return .none
    case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .exhausted
    case _: return .lost
    }
  }

  /// Takes the socket's pending error, 0 for none. For a connecting socket that became writable: its outcome.
  func takeError(_ socket: Int32) -> Int32 {
    if isSimulated, let network { return network.takeError(socket) }
    var number: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    guard unsafe getsockopt(socket, SOL_SOCKET, SO_ERROR, &number, &length) == 0 else { return errno }
    return number
  }

  /// One read.
  func receive(_ socket: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
    if isSimulated, let network { return unsafe network.receive(socket, into: buffer) }
    let count = unsafe recv(socket, buffer.baseAddress!, buffer.count, 0)
    if count > 0 { return .moved(count) }
    if count == 0 { return .ended }
    return errno == EAGAIN || errno == EINTR ? .wouldBlock : .failed(errno: errno)
  }

  /// One write of `count` pieces of memory (at least one byte in all).
  func send(_ socket: Int32, _ pieces: UnsafeMutablePointer<iovec>, count: Int) -> Transfer {
    if count == 1 {
      return unsafe send(socket, UnsafeRawBufferPointer(start: pieces.pointee.iov_base, count: pieces.pointee.iov_len))
    }
    if isSimulated { return unsafe sendEach(socket, UnsafeBufferPointer(start: pieces, count: count)) }
    var message = unsafe msghdr()
    unsafe message.msg_iov = pieces
    unsafe message.msg_iovlen = count
    while true {
      let sent = unsafe sendmsg(socket, &message, Int32(MSG_NOSIGNAL))
      if sent >= 0 { return .moved(sent) }
      if errno != EINTR { return Self.unsent(errno) }
    }
  }

  private func sendEach(_ socket: Int32, _ pieces: UnsafeBufferPointer<iovec>) -> Transfer {
    var sent = 0
    for index in pieces.indices {
      let piece = unsafe pieces[index]
      let transfer = unsafe send(socket, UnsafeRawBufferPointer(start: piece.iov_base, count: piece.iov_len))
      guard case .moved(let count) = transfer else { return sent > 0 ? .moved(sent) : transfer }
      sent += count
      if unsafe count < piece.iov_len { break }
    }
    return .moved(sent)
  }

  /// One write of memory in one piece, at least one byte. With MSG_NOSIGNAL a peer that is gone gives an error, and no
  /// SIGPIPE, which would end the process.
  @inline(__always)
  func send(_ socket: Int32, _ bytes: UnsafeRawBufferPointer) -> Transfer {
    if isSimulated, let network { return unsafe network.send(socket, bytes) }
    while true {
      let sent = unsafe Glibc.send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
      if sent >= 0 { return .moved(sent) }
      if errno != EINTR { return Self.unsent(errno) }
    }
  }

  /// The result of a write that failed with `number`. ENOBUFS and ENOMEM are temporary; EPOLLOUT comes when there is
  /// room again.
  static func unsent(_ number: Int32) -> Transfer {
    switch number {
    case EAGAIN, ENOBUFS, ENOMEM: .wouldBlock
    case _: .failed(errno: number)
    }
  }

  /// Sets the time after which the kernel ends a connection whose peer reads nothing (`EventLoop.abortIfUnread`).
  func abortIfUnread(_ socket: Int32, afterMilliseconds milliseconds: Int32) throws(SystemError) {
    if isSimulated { return }
    try Self.set(socket, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, milliseconds)
  }

  /// Sends FIN, and keeps the other direction. False when the peer is gone already.
  func finish(_ socket: Int32) -> Bool {
    if isSimulated, let network { return network.finish(socket) }
    return shutdown(socket, Int32(SHUT_WR)) == 0
  }

  /// Closes the socket; `reset` discards the kernel's unsent bytes and sends RST.
  func close(_ socket: Int32, reset: Bool = false) {
    if isSimulated, let network { return network.close(socket, reset: reset) }
    if reset {
      var option = linger(l_onoff: 1, l_linger: 0)
      // An error means that the connection is gone already, as wanted.
      _ = unsafe setsockopt(socket, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }
    _ = Glibc.close(socket)
  }
}
