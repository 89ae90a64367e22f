// Loaded by AVA before each test file, so that a file run separately has the environment of `npm test`.
import { testEnvironment } from './environment.js';

const environment = testEnvironment(process.env);
for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name];
Object.assign(process.env, environment);
