/**
 * Passes the messages of a WebSocket on, in both directions, to learn when it closes. The runtime would otherwise
 * connect both sides without this Worker.
 *
 * @returns the response for the client, and a promise that resolves when the WebSocket has closed. Without a
 * WebSocket, it resolves at once
 */
export function relaySocket(response: Response) {
  const { webSocket: origin, status, headers } = response;
  const end = { isRead: () => true, cancel: () => {} };
  if (!origin) return { response, ended: Promise.resolve(), ...end };
  const { 0: forClient, 1: client } = new WebSocketPair();
  const ended = Promise.all([passOn(origin, client), passOn(client, origin)]);
  for (const socket of [client, origin]) {
    // A side that has closed may still receive messages, until the other side has closed too.
    socket.accept({ allowHalfOpen: true });
    socket.binaryType = "arraybuffer";
  }
  const relayed = new Response(null, { status, headers, webSocket: forClient });
  return { response: relayed, ended, ...end };
}

/** Passes messages and the end on. The promise resolves at the end. */
function passOn(from: WebSocket, to: WebSocket): Promise<void> {
  return new Promise((resolve) => {
    from.addEventListener("message", ({ data }) => ifOpen(() => to.send(data)));
    const close = (code: number, reason: string) => {
      ifOpen(() => to.close(code, reason));
      resolve();
    };
    from.addEventListener("close", ({ code, reason }) => close(sendable(code), reason));
    from.addEventListener("error", () => close(1011, ""));
  });
}

/** Does nothing if the other side has closed meanwhile. */
function ifOpen(send: () => void): void {
  try {
    send();
  } catch {
    // The connection has ended, so nobody receives anything.
  }
}

/** Returns a code that an endpoint may send. 1005, 1006 and 1015 only report that there was none (RFC 6455, 7.4.1). */
function sendable(code: number): number {
  return code === 1005 ? 1000 : code === 1006 || code === 1015 ? 1011 : code;
}
