import test from 'ava';
import { testChargesModel } from '../contract/charges_model.ts';
import { sqlitePlace } from '../support/books.ts';

testChargesModel(test, sqlitePlace, 10_000);
