import { render } from 'preact';
import '../style/playground.css';
import { Playground } from './Playground.tsx';

const page = document.getElementById('page');
if (page) render(<Playground />, page);
