import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";

/** Where a server listens, and how to end it. */
export type Listening = {
  host: string;
  port: number;
  /** Stops listening and drops open connections. */
  stop(): Promise<void>;
};

export type ListenOptions = {
  /** Default: `127.0.0.1`, so that nobody else on the network reaches it. */
  host?: string;
  /** Default: a free port. */
  port?: number;
};

/**
 * Lets a server listen, on loopback unless told otherwise.
 *
 * @throws when the port is taken or not permitted.
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
      // A server closes once its last client has gone, and clients keep connections for later.
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
