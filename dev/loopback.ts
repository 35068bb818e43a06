import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";

/** A server that listens on a port. */
export interface Listening {
  readonly host: string;
  readonly port: number;
  /** Stops listening and drops open connections. */
  stop(): Promise<void>;
}

export interface ListenOptions {
  /** @default "127.0.0.1", which other machines cannot reach */
  readonly host?: string;
  /** @default a free port */
  readonly port?: number;
}

/**
 * Makes a server listen on a port, by default on loopback.
 *
 * @throws if the port is in use or not permitted
 */
export async function listen(
  server: Server,
  { host = "127.0.0.1", port = 0 }: ListenOptions = {},
): Promise<Listening> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.listen(port, host);
  await once(server, "listening");

  return {
    host,
    port: (server.address() as AddressInfo).port,
    async stop() {
      const closed = once(server, "close");
      server.close();
      // `close` waits for the end of the last connection, and clients keep connections open.
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
