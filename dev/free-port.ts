import getPort, { portNumbers } from "get-port";

const HOST = "127.0.0.1";
/** The port of `npm run dev`, and of `wrangler dev`. */
export const DEFAULT_PORT = 8787;

/**
 * The loopback port to listen on: the one that was asked for, or else 8787 or the next free one.
 *
 * @throws when the port that was asked for cannot be had. Another one would not do: whoever named
 * it counts on it.
 */
export async function choosePort(wanted?: number): Promise<number> {
  if (wanted === undefined) {
    return getPort({ host: HOST, port: portNumbers(DEFAULT_PORT, DEFAULT_PORT + 100) });
  }
  const port = await getPort({ host: HOST, port: wanted });
  if (port !== wanted) {
    throw new Error(
      `Port ${wanted} is in use, or not permitted. Give another one with --port, or none for a free one.`,
    );
  }
  return port;
}
