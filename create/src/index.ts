/**
 * The command `create-edge-weir`, which `npm create edge-weir@latest` runs. It first checks the version of Node,
 * because an older Node could not load the other files. The field `engines` in package.json has the versions too.
 */
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19)) {
  await import("./main.ts");
} else {
  console.error(
    `create-edge-weir needs Node 20.19, or 22.12 and newer, but this is Node ${process.versions.node}. Install the LTS version from https://nodejs.org.`,
  );
  process.exitCode = 1;
}

export {};
