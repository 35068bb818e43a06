import { once } from "node:events";
import { connect } from "node:net";

/** Whether no server listens at this address. */
export async function refuses({ host, port }: { host: string; port: number }): Promise<boolean> {
  const socket = connect(port, host);
  try {
    await once(socket, "connect");
    return false;
  } catch {
    return true;
  } finally {
    socket.destroy();
  }
}
