/**
 * Returns a function that finds the value for a canonical host: the value of the host itself, or of the
 * longest `*.` name that matches the host.
 *
 * @param byHost the keys are hosts as `parseHost` returns them
 */
export function hostLookup<T>(byHost: ReadonlyMap<string, T>): (host: string) => T | undefined {
  // A client can send a host with many dots. So an ending of the host is looked up only if it has
  // at most as many dots as a configured host.
  const maxDots = Math.max(0, ...[...byHost.keys()].map((host) => host.split(".").length - 1));
  return (host) => {
    let found = byHost.get(host);
    if (found !== undefined) return found;
    let dot = host.length;
    for (let dots = 1; dots <= maxDots && dot > 0; dots++) {
      dot = host.lastIndexOf(".", dot - 1);
      if (dot === -1) break;
      found = byHost.get(`*${host.slice(dot)}`) ?? found;
    }
    return found;
  };
}
