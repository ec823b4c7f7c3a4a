import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

/** Where `vite` in development finds a running service. */
const SERVICE = 'http://127.0.0.1:8002'

export default defineConfig({
  plugins: [react(), tailwindcss()],
  // `sandlot-source`: packages of this workspace are read as TypeScript, without building them first.
  resolve: {
    conditions: ['sandlot-source', 'module', 'browser', 'development|production', 'import', 'default'],
  },
  build: { outDir: 'dist', target: 'es2023', sourcemap: false },
  server: {
    host: '127.0.0.1',
    proxy: {
      '/api': { target: SERVICE },
      '/ws': { target: SERVICE, ws: true },
    },
  },
})
