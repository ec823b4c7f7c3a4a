/** Every row of the table of hostile inputs on Docker, see README.md. */
import { dockerEngine } from './docker-engine.ts'
import { playRows } from './suite.ts'

playRows(dockerEngine)
