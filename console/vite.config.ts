import { defineConfig } from "vite";

// Users have no Node.js: what is built here is part of the Python package, and committed.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/towpath/console/static",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the pages' security policy allows nothing inline
    modulePreload: { polyfill: false },
    target: "es2022",
    license: { fileName: "licenses.md" },
    chunkSizeWarningLimit: 600,
  },
  server: { proxy: Object.fromEntries(["/console", "/queries", "/withdraw", "/moves", "/drain", "/history"].map((path) => [path, "http://127.0.0.1:8765"])) },
});
