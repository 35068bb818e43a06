import type { NetworkSet } from "../config/network-set.ts";
import { readClient } from "./client-address.ts";
import type { HeaderFields } from "./header-fields.ts";

/** Whether a client's address is in one of the exempt networks. */
export function isExemptAddress(networks: NetworkSet, headers: HeaderFields): boolean {
  const client = networks.size > 0 ? readClient(headers) : undefined;
  return client?.kind === "address" && networks.contains(client.address);
}
