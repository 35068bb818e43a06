import getPort, { portNumbers } from "get-port";

const HOST = "127.0.0.1";
/** The default port of `npm run dev`, which is the same as that of `wrangler dev`. */
export const DEFAULT_PORT = 8787;

/**
 * Chooses the loopback port to listen on. It is the requested port, or by default 8787 or the next free port.
 *
 * @throws if the requested port is not available, because other programs expect this port
 */
export async function choosePort(requested?: number): Promise<number> {
  if (requested === undefined) {
    return getPort({ host: HOST, port: portNumbers(DEFAULT_PORT, DEFAULT_PORT + 100) });
  }
  const port = await getPort({ host: HOST, port: requested });
  if (port !== requested) {
    throw new Error(
      `Port ${requested} is in use, or not permitted. Pass another port with --port, or no port to use a free one.`,
    );
  }
  return port;
}
