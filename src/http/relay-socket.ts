/** The time in milliseconds after which a side that does not answer a Close counts as gone. */
const CLOSE_MS = 10_000;

/**
 * Passes the messages of a WebSocket on, in both directions, to learn when it closes. The runtime would otherwise
 * connect both sides without this Worker.
 *
 * @returns the response for the client, and a promise that resolves when the WebSocket has closed; undefined for a
 * response without a WebSocket
 */
export function relaySocket({ webSocket: origin, status, headers }: Response) {
  if (!origin) return undefined;
  const { 0: forClient, 1: client } = new WebSocketPair();
  const ended = new Promise<void>((resolve) => {
    passOn(origin, client, resolve);
    passOn(client, origin, resolve);
  });
  for (const socket of [client, origin]) {
    socket.binaryType = "arraybuffer";
    // A side that has closed may still receive messages, until the other side has closed too.
    socket.accept({ allowHalfOpen: true });
  }
  return { response: new Response(null, { status, headers, webSocket: forClient }), ended };
}

/**
 * Passes messages and the Close on.
 *
 * @param onEnd called when both sides have closed, when one has broken off, or if one does not answer a Close
 */
function passOn(from: WebSocket, to: WebSocket, onEnd: () => void): void {
  from.addEventListener("message", ({ data }) => attempt(() => to.send(data)));
  from.addEventListener("close", ({ code, reason }) => {
    close(to, code, reason);
    if (code === 1006 || from.readyState === WebSocket.CLOSED) onEnd();
    else setTimeout(onEnd, CLOSE_MS);
  });
  from.addEventListener("error", () => {
    close(to, 1011, "");
    onEnd();
  });
}

/** Closes with a code that an endpoint may send (RFC 6455, section 7.4), and with a reason that is short enough. */
function close(socket: WebSocket, code: number, reason: string): void {
  const isAllowed = code >= 1000 && code <= 4999 && ![1004, 1005, 1006, 1015].includes(code);
  if (isAllowed && attempt(() => socket.close(code, reason))) return;
  attempt(() => (code === 1005 ? socket.close() : socket.close(code === 1006 ? 1011 : 1002)));
}

/** @returns false if the other side has closed meanwhile, or if it refuses the arguments */
function attempt(send: () => void): boolean {
  try {
    send();
    return true;
  } catch {
    return false;
  }
}
