/**
 * The script `prepack`, which npm runs before `npm pack` and `npm publish`. It refuses both commands, because the
 * repository's package.json points at TypeScript. npm also runs this script before `npm run pack`, which is allowed.
 */
const command = process.env.npm_command ?? "";

if (["pack", "publish"].includes(command)) {
  console.error(`npm ${command} would pack the sources. The packages are folders of their own:`);
  console.error(
    "  npm run pack                   builds dist/package and dist/create, and packs them",
  );
  console.error("  npm publish ./dist/package     publishes edge-weir after that");
  console.error("  npm publish ./dist/create      publishes create-edge-weir after that");
  process.exitCode = 1;
}
