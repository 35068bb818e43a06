/**
 * The command `create-edge-weir`, which `npm create edge-weir@latest` runs. It checks the version of
 * Node before it loads any other file, because an older Node could not load them. The versions are
 * those of the field `engines` in package.json.
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
